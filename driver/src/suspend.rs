//! Notices that the machine was suspended.
//!
//! [`Instant`](std::time::Instant) stands still meanwhile on Linux and Android, so the keep-alive
//! clocks would not see it.

use std::time::Duration;

/// Compares two clocks, of which only one runs during a suspend.
pub(crate) struct SuspendWatch {
    read: Box<dyn Fn() -> Duration + Send>,
    /// How far the one is ahead of the other.
    gap: Duration,
}

impl SuspendWatch {
    pub(crate) fn new() -> Self {
        Self::reading(gap)
    }

    /// A watch on any two clocks: `read` tells how far the one is ahead of the other.
    pub(crate) fn reading(read: impl Fn() -> Duration + Send + 'static) -> Self {
        Self {
            gap: read(),
            read: Box::new(read),
        }
    }

    /// How long the machine slept since the last time, if it did.
    pub(crate) fn slept(&mut self) -> Option<Duration> {
        self.grown_to((self.read)())
    }

    fn grown_to(&mut self, gap: Duration) -> Option<Duration> {
        let slept = gap.saturating_sub(self.gap);
        if slept <= NOISE {
            return None;
        }
        self.gap = gap;
        Some(slept)
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn gap() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let read = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    // In this order: what passes between the two readings must not look like sleep.
    let boot = read(ClockId::Boottime);
    boot.saturating_sub(read(ClockId::Monotonic))
}

/// Elsewhere the one clock there is runs on, or cannot be told from the other.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn gap() -> Duration {
    Duration::ZERO
}

const NOISE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_gap_that_grew_is_sleep_and_it_is_told_once() {
        let ms = Duration::from_millis;
        let mut watch = SuspendWatch::reading(move || ms(5_000));
        assert_eq!(watch.grown_to(ms(5_000)), None);
        assert_eq!(watch.grown_to(ms(5_100)), None);
        assert_eq!(watch.grown_to(ms(12_000)), Some(ms(7_000)));
        assert_eq!(watch.grown_to(ms(12_000)), None);
        assert_eq!(watch.grown_to(ms(4_000)), None);
    }

    #[test]
    fn a_machine_that_stays_awake_did_not_sleep() {
        assert_eq!(SuspendWatch::new().slept(), None);
    }
}
