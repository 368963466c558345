//! Numbers and times as people read them.

use std::time::Duration;

/// `12,345`
pub(super) fn count(number: f64) -> String {
    let digits = format!("{:.0}", number.max(0.0));
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Three digits and a unit: `123 ms`, `1.23 s`, `12.3 s`, `2 min 5 s`.
pub fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let minutes = (seconds / 60.0).floor();
    match seconds {
        _ if seconds < 0.9995 => format!("{:.0} ms", seconds * 1e3),
        _ if seconds < 9.995 => format!("{} s", trimmed(seconds, 2)),
        _ if seconds < 60.0 => format!("{} s", trimmed(seconds, 1)),
        _ => match (seconds - minutes * 60.0).floor() {
            0.0 => format!("{minutes} min"),
            rest => format!("{minutes} min {rest} s"),
        },
    }
}

/// With so many decimals, without zeros at the end.
pub(super) fn trimmed(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(
            [0.0, 999.0, 1_000.0, 1_234_567.0].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
    }

    #[test]
    fn times_have_the_unit_that_suits_them() {
        let text = |millis| time(Duration::from_millis(millis));
        let texts = [7, 999, 1_000, 1_234, 12_340, 59_900, 60_000, 125_000].map(text);
        let expected = [
            "7 ms",
            "999 ms",
            "1 s",
            "1.23 s",
            "12.3 s",
            "59.9 s",
            "1 min",
            "2 min 5 s",
        ];
        assert_eq!(texts, expected);
    }
}
