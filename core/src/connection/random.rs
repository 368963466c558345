//! Uniform draws.

use rand_core::Rng;
use std::time::Duration;

/// A number below `bound`, which is not 0, without bias (Lemire's method). Where there is but one,
/// nothing is drawn.
fn below(rng: &mut impl Rng, bound: u64) -> u64 {
    if bound == 1 {
        return 0;
    }
    let reject_below = bound.wrapping_neg() % bound;
    loop {
        let product = u128::from(rng.next_u64()) * u128::from(bound);
        let low = product as u64;
        if low >= reject_below {
            return (product >> 64) as u64;
        }
    }
}

/// One of the items, if there is one.
pub(super) fn one_of<'a, T>(rng: &mut impl Rng, items: &'a [T]) -> Option<&'a T> {
    match items.len() {
        0 => None,
        len => items.get(below(rng, len as u64) as usize),
    }
}

/// `count` of the items, or all, in random order.
pub(super) fn some_of<T: Copy>(rng: &mut impl Rng, items: &[T], count: usize) -> Vec<T> {
    let mut items = items.to_vec();
    for index in 0..count.min(items.len()) {
        let other = index + below(rng, (items.len() - index) as u64) as usize;
        items.swap(index, other);
    }
    items.truncate(count);
    items
}

/// A duration from `shortest` to `longest`, both included.
pub(super) fn duration(rng: &mut impl Rng, shortest: Duration, longest: Duration) -> Duration {
    let span = longest.saturating_sub(shortest).as_nanos();
    let span = u64::try_from(span).unwrap_or(u64::MAX);
    shortest + Duration::from_nanos(below(rng, span.saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    #[test]
    fn draws_are_even_and_reach_both_ends() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut seen = [0_u32; 3];
        for _ in 0..3000 {
            seen[below(&mut rng, 3) as usize] += 1;
        }
        assert!(
            seen.iter().all(|count| (900..=1100).contains(count)),
            "{seen:?}"
        );

        let longest = Duration::from_nanos(2);
        let draws: Vec<_> = (0..100)
            .map(|_| duration(&mut rng, Duration::ZERO, longest))
            .collect();
        assert!(draws.contains(&Duration::ZERO) && draws.contains(&longest));
        assert!(draws.iter().all(|draw| *draw <= longest));
    }

    #[test]
    fn where_nothing_is_left_to_chance_nothing_is_drawn() {
        let rng = ChaCha8Rng::seed_from_u64(1);
        let mut used = rng.clone();
        assert_eq!(below(&mut used, 1), 0);
        assert_eq!(one_of(&mut used, &[7]), Some(&7));
        assert_eq!(some_of(&mut used, &[7], 1), [7]);
        let second = Duration::from_secs(1);
        assert_eq!(duration(&mut used, second, second), second);
        assert_eq!(used, rng);
    }

    #[test]
    fn ranges_of_no_width_and_reversed_ones_do_not_panic() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let second = Duration::from_secs(1);
        assert_eq!(duration(&mut rng, second, second), second);
        assert_eq!(duration(&mut rng, second, Duration::ZERO), second);
        assert!(duration(&mut rng, Duration::ZERO, Duration::MAX) <= Duration::MAX);
        assert_eq!(one_of::<u8>(&mut rng, &[]), None);
        assert_eq!(some_of(&mut rng, &[1, 2], 5).len(), 2);
    }
}
