//! The deadline that a call carries (gRPC over HTTP/2, "Timeout").

use http::HeaderMap;
use std::time::{Duration, Instant};

/// When a call with these headers is over; `None` where they do not say, or say nothing sensible.
pub(crate) fn deadline(headers: &HeaderMap) -> Option<Instant> {
    let timeout = parse(headers.get("grpc-timeout")?.to_str().ok()?)?;
    Instant::now().checked_add(timeout)
}

fn parse(text: &str) -> Option<Duration> {
    let unit = text.chars().next_back()?;
    let digits = text.strip_suffix(unit)?;
    if digits.len() > MOST_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value: u32 = digits.parse().ok()?;
    Some(match unit {
        'H' => Duration::from_secs(3600) * value,
        'M' => Duration::from_secs(60) * value,
        'S' => Duration::from_secs(value.into()),
        'm' => Duration::from_millis(value.into()),
        'u' => Duration::from_micros(value.into()),
        'n' => Duration::from_nanos(value.into()),
        _ => return None,
    })
}

const MOST_DIGITS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_known_and_nonsense_is_none() {
        for (text, expected) in [
            ("2H", Some(Duration::from_secs(7200))),
            ("3M", Some(Duration::from_secs(180))),
            ("99999999S", Some(Duration::from_secs(99_999_999))),
            ("5m", Some(Duration::from_millis(5))),
            ("6u", Some(Duration::from_micros(6))),
            ("7n", Some(Duration::from_nanos(7))),
            ("100000000S", None),
            ("+1S", None),
            ("S", None),
            ("1", None),
            ("1s", None),
            ("1é", None),
            ("", None),
        ] {
            assert_eq!(parse(text), expected, "{text:?}");
        }
    }
}
