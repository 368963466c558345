//! From values to pixels, and which values an axis names.

use super::words::{count, time, trimmed};
use std::time::Duration;

/// One axis: its values, its pixels, and its ticks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    kind: Kind,
    from: f64,
    to: f64,
    /// Values with their names.
    pub(super) ticks: Vec<(f64, String)>,
    /// What is measured, in which unit.
    pub(super) title: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Linear,
    Logarithmic,
}

impl Axis {
    /// Numbers from zero to at least `most`, with about so many ticks.
    pub(super) fn counts(most: f64, ticks: usize, title: &'static str) -> Self {
        let step = nice_step(most.max(1.0), ticks).max(1.0);
        let steps = (most.max(1.0) / step - 1e-9).ceil() as usize;
        let values = (0..=steps).map(|index| index as f64 * step);
        Self {
            kind: Kind::Linear,
            from: 0.0,
            to: steps as f64 * step,
            ticks: values.map(|value| (value, count(value))).collect(),
            title,
        }
    }

    /// Shares from 0 to 100 %.
    pub(super) fn percent(title: &'static str) -> Self {
        let values = (0..=4).map(|quarter| f64::from(quarter) * 25.0);
        Self {
            kind: Kind::Linear,
            from: 0.0,
            to: 100.0,
            ticks: values.map(|value| (value, format!("{value} %"))).collect(),
            title,
        }
    }

    /// Virtual time from zero, in seconds, with at most so many ticks.
    pub(super) fn time(until: Duration, ticks: usize) -> Self {
        let until = until.as_secs_f64().max(0.1);
        let fits = |step: &f64| until / step <= ticks as f64;
        let step = TIME_STEPS.into_iter().find(fits).unwrap_or(3_600.0);
        let number = (until / step + 1e-9).floor() as usize;
        let values = (0..=number).map(|index| index as f64 * step);
        Self {
            kind: Kind::Linear,
            from: 0.0,
            to: until,
            ticks: values
                .map(|value| (value, tick_of_time(value, step)))
                .collect(),
            title: "virtual time",
        }
    }

    /// Durations in seconds on a logarithmic scale that has room for all from `shortest` to
    /// `longest`.
    pub(super) fn durations(shortest: f64, longest: f64, title: &'static str) -> Self {
        let (shortest, longest) = (shortest.max(1e-3), longest.max(2e-3));
        let steps: &[f64] = match longest / shortest < 3.0 {
            true => &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0],
            false => &[1.0, 2.0, 5.0],
        };
        let decades = (-3..=4).map(|decade| 10_f64.powi(decade));
        let steps: Vec<f64> = decades
            .flat_map(|decade| steps.iter().map(move |step| step * decade))
            .collect();
        let below = steps.iter().rev().find(|step| **step <= shortest);
        let above = steps.iter().find(|step| **step >= longest);
        let from = below.copied().unwrap_or(1e-3);
        let to = above.copied().unwrap_or(5e4).max(from * 1.2);
        let all = steps.into_iter().filter(|step| (from..=to).contains(step));
        let name = |step: f64| time(Duration::from_secs_f64(step));
        Self {
            kind: Kind::Logarithmic,
            from,
            to,
            ticks: all.map(|step| (step, name(step))).collect(),
            title,
        }
    }

    /// The share of the axis that lies before a value, 0 to 1.
    pub(super) fn share(&self, value: f64) -> f64 {
        let share = match self.kind {
            Kind::Linear => (value - self.from) / (self.to - self.from),
            Kind::Logarithmic => (value.max(1e-6) / self.from).ln() / (self.to / self.from).ln(),
        };
        share.clamp(0.0, 1.0)
    }

    /// The first and the last value.
    pub(super) fn ends(&self) -> (f64, f64) {
        (self.from, self.to)
    }
}

/// 1, 2 or 5 times a power of ten, so that about `ticks` steps reach `most`.
pub(super) fn nice_step(most: f64, ticks: usize) -> f64 {
    let rough = most / ticks as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    let found = steps.into_iter().find(|step| *step >= rough * 0.999_999);
    found.unwrap_or(10.0 * power)
}

fn tick_of_time(seconds: f64, step: f64) -> String {
    let name = match step >= 60.0 {
        true => return format!("{} min", seconds / 60.0),
        false => trimmed(seconds, 1),
    };
    format!("{name} s")
}

const TIME_STEPS: [f64; 13] = [
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, name)| name.as_str()).collect()
    }

    #[test]
    fn counts_end_at_a_round_number_and_never_divide_one_client() {
        let axis = Axis::counts(1_180.0, 4, "");
        assert_eq!(names(&axis), ["0", "500", "1,000", "1,500"]);
        assert_eq!(names(&Axis::counts(2.0, 5, "")), ["0", "1", "2"]);
        assert_eq!(names(&Axis::counts(0.0, 5, "")), ["0", "1"]);
    }

    #[test]
    fn times_are_named_in_one_unit() {
        let axis = |seconds| Axis::time(Duration::from_secs(seconds), 6);
        assert_eq!(
            names(&axis(60)),
            ["0 s", "10 s", "20 s", "30 s", "40 s", "50 s", "60 s"]
        );
        assert_eq!(names(&axis(600)).last(), Some(&"10 min"));
        let short = Axis::time(Duration::from_millis(450), 5);
        assert_eq!(names(&short)[1], "0.1 s");
    }

    #[test]
    fn durations_are_logarithmic_and_have_room_for_all() {
        let axis = Axis::durations(0.03, 1.2, "");
        assert_eq!(axis.ends(), (0.02, 2.0));
        assert_eq!(names(&axis)[..3], ["20 ms", "50 ms", "100 ms"]);
        assert!((axis.share(0.2) - 0.5).abs() < 1e-9);
        let close = Axis::durations(2.03, 2.31, "");
        assert_eq!(names(&close), ["2 s", "2.5 s"]);
    }

    #[test]
    fn shares_stay_on_the_axis() {
        let axis = Axis::counts(10.0, 5, "");
        assert_eq!(
            [axis.share(-3.0), axis.share(5.0), axis.share(99.0)],
            [0.0, 0.5, 1.0]
        );
    }
}
