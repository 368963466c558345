//! Notices that the machine was suspended.
//!
//! [`Instant`] stands still meanwhile on Linux and Android (`CLOCK_MONOTONIC`) and on Apple's systems
//! (`CLOCK_UPTIME_RAW`), so the keep-alive clocks would not see it.

use std::{
    mem,
    time::{Duration, Instant},
};

/// Compares two clocks, of which only one runs during a suspend.
pub(crate) struct SuspendWatch {
    read: Box<dyn Fn() -> Duration + Send>,
    /// How far the one is ahead of the other.
    gap: Duration,
}

impl SuspendWatch {
    pub(crate) fn new() -> Self {
        let begun = Instant::now();
        Self::reading(move || gap(|| begun.elapsed(), || runs(begun)))
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
        // Clocks that are adjusted apart drift, by little between two looks.
        let slept = gap.saturating_sub(mem::replace(&mut self.gap, gap));
        (slept > NOISE).then_some(slept)
    }
}

/// How far one clock is ahead of another that stands still during a suspend, give or take half the
/// noise: what passes between two readings must not look like sleep.
fn gap(mut still: impl FnMut() -> Duration, mut runs: impl FnMut() -> Duration) -> Duration {
    loop {
        let before = still();
        let gap = runs().saturating_sub(before);
        if still().saturating_sub(before) <= NOISE / 2 {
            return gap;
        }
    }
}

/// The clock that runs on.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn runs(_begun: Instant) -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    #[cfg(target_vendor = "apple")]
    const CLOCK: ClockId = ClockId::Monotonic;
    #[cfg(not(target_vendor = "apple"))]
    const CLOCK: ClockId = ClockId::Boottime;
    Duration::try_from(clock_gettime(CLOCK)).unwrap_or_default()
}

/// Elsewhere the one clock there is runs on, or cannot be told from the other.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn runs(begun: Instant) -> Duration {
    begun.elapsed()
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
        assert_eq!(watch.grown_to(ms(12_000)), Some(ms(6_900)));
        assert_eq!(watch.grown_to(ms(12_000)), None);
        assert_eq!(watch.grown_to(ms(4_000)), None);
    }

    #[test]
    fn a_clock_that_was_read_much_later_than_the_other_is_read_again() {
        let ms = Duration::from_millis;
        // Held up for longer than the noise before the second reading, then before the third.
        let mut still = [0, 120, 120, 240, 240, 250].map(ms).into_iter();
        let mut runs = [5_120, 5_120, 5_245].map(ms).into_iter();
        let gap = gap(|| still.next().unwrap(), || runs.next().unwrap());
        assert_eq!(gap, ms(5_005));
        assert_eq!((still.next(), runs.next()), (None, None));
    }

    #[test]
    fn a_machine_that_stays_awake_did_not_sleep() {
        assert_eq!(SuspendWatch::new().slept(), None);
    }
}
