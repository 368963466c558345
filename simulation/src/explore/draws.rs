//! Randomness as one more thing that is explored.

use rand_core::TryRng;
use std::convert::Infallible;

/// A generator whose draws are told.
///
/// What a machine without random waits draws is one of at most three candidates, or a name. Each
/// draw of a number is a digit of a script, 0 to 2, which stands for a number that picks the first,
/// the second or the third of three, and the first or the second of two; so the scripts together
/// reach every outcome. Names come from a counter: none is drawn twice in one life.
#[derive(Debug, Clone, Default)]
pub struct Draws {
    script: Script,
    drawn: u32,
    names: u64,
}

impl Draws {
    /// Tells what the next draws are.
    pub(super) fn follow(&mut self, script: Script) {
        self.script = script;
        self.drawn = 0;
    }

    /// The script after the one that was followed; `None` after the last one.
    pub(super) fn next_script(&self) -> Option<Script> {
        self.script.next(self.drawn)
    }

    /// Whether more was drawn than a script can tell.
    pub(super) fn has_overdrawn(&self) -> bool {
        self.drawn > Script::LONGEST
    }

    fn name(&mut self) -> u64 {
        self.names += 1;
        self.names
    }
}

impl TryRng for Draws {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.name() as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let digit = self.script.digit(self.drawn);
        self.drawn += 1;
        Ok(PICKS[digit as usize])
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        let name = self.name().to_le_bytes();
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = name.get(index).copied().unwrap_or(0);
        }
        Ok(())
    }
}

/// The digits of the draws of one step, in base 3, the first draw being the lowest digit. Draws
/// beyond the script are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Script(pub(super) u16);

impl Script {
    /// The digits that a script has room for.
    pub(super) const LONGEST: u32 = 10;

    fn digit(self, place: u32) -> u16 {
        match BASE.checked_pow(place) {
            Some(weight) => self.0 / weight % BASE,
            None => 0,
        }
    }

    /// Depth first: the last draw that was made takes its next digit, and those after it are 0.
    fn next(self, drawn: u32) -> Option<Self> {
        let place = (0..drawn.min(Self::LONGEST))
            .rev()
            .find(|place| self.digit(*place) + 1 < BASE)?;
        let weight = BASE.pow(place);
        Some(Self(self.0 % weight + (self.digit(place) + 1) * weight))
    }
}

const BASE: u16 = 3;

/// A twelfth, seven twelfths and eleven twelfths of the range.
const PICKS: [u64; BASE as usize] = [u64::MAX / 12, u64::MAX / 12 * 7, u64::MAX / 12 * 11];

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::Rng;
    use std::collections::BTreeSet;

    /// Picks one of so many, the way the connection does.
    fn pick(draws: &mut Draws, bound: u64) -> u64 {
        let product = u128::from(draws.next_u64()) * u128::from(bound);
        (product >> 64) as u64
    }

    #[test]
    fn the_scripts_reach_every_outcome_of_up_to_three_candidates() {
        for bounds in [[1, 1], [2, 3], [3, 2], [3, 3], [2, 2]] {
            let mut outcomes = BTreeSet::new();
            let mut script = Some(Script::default());
            while let Some(next) = script {
                let mut draws = Draws::default();
                draws.follow(next);
                outcomes.insert(bounds.map(|bound| pick(&mut draws, bound)));
                script = draws.next_script();
            }
            let all = bounds.iter().product::<u64>() as usize;
            assert_eq!(outcomes.len(), all, "{bounds:?}");
        }
    }

    #[test]
    fn how_often_a_number_is_drawn_may_depend_on_the_draws() {
        let mut lives = Vec::new();
        let mut script = Some(Script::default());
        while let Some(next) = script {
            let mut draws = Draws::default();
            draws.follow(next);
            let first = pick(&mut draws, 3);
            lives.push(if first == 1 {
                (first, pick(&mut draws, 3))
            } else {
                (first, 0)
            });
            script = draws.next_script();
        }
        assert_eq!(lives, [(0, 0), (1, 0), (1, 1), (1, 2), (2, 0)]);
    }

    #[test]
    fn no_name_is_drawn_twice_in_a_life() {
        let mut draws = Draws::default();
        let mut names = BTreeSet::new();
        for _ in 0..1000 {
            let mut name = [0; 16];
            draws.fill_bytes(&mut name);
            assert!(names.insert(name));
        }
        assert_eq!(draws.next_script(), None, "names are no draws");
    }
}
