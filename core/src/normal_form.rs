//! What a state is, whenever it is reached and whatever its ids are.

use crate::Id;
use std::{
    hash::{Hash, Hasher},
    time::Instant,
};

/// Writes a state into a hasher such that two states from which the same can follow are written
/// alike.
///
/// Ids and other names are numbered in the order in which they appear, and instants count from the
/// moment of the state. One form can take several parts of a state, such as a connection and the
/// books of whoever watches it: what has one name in both has one number.
///
/// Only with the feature `model-checking`.
#[derive(Debug, Clone)]
pub struct NormalForm<H> {
    hasher: H,
    now: Instant,
    ids: Vec<Id>,
    names: Vec<String>,
}

impl<H: Hasher> NormalForm<H> {
    /// An empty form, of a state at `now`.
    pub fn new(hasher: H, now: Instant) -> Self {
        Self {
            hasher,
            now,
            ids: Vec::new(),
            names: Vec::new(),
        }
    }

    /// Writes something that is the same in every state that is alike.
    pub fn value(&mut self, value: impl Hash) {
        value.hash(&mut self.hasher);
    }

    /// Writes an instant, as far as it is from the moment of the state.
    pub fn instant(&mut self, at: Instant) {
        let ahead = at.saturating_duration_since(self.now);
        let ago = self.now.saturating_duration_since(at);
        self.value((ahead, ago));
    }

    /// Writes an instant that matters until it has come: those of the past are all alike.
    pub fn ahead(&mut self, at: Instant) {
        self.instant(at.max(self.now));
    }

    /// Writes an id, as its number.
    pub fn id(&mut self, id: Id) {
        let number = self.number(id);
        self.value(number);
    }

    /// The number of an id: how many others appeared before it.
    pub fn number(&mut self, id: Id) -> usize {
        number(&mut self.ids, id)
    }

    /// Writes a name that was drawn to be unique, as the number of others that appeared before it.
    pub fn name(&mut self, name: String) {
        let number = number(&mut self.names, name);
        self.value(number);
    }

    /// Writes what may not be there.
    pub fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.value(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }

    /// Writes a number of things, and how many there are.
    pub fn list<T>(
        &mut self,
        values: impl ExactSizeIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) {
        self.value(values.len());
        values.for_each(|value| write(self, value));
    }

    /// Counts instants from another moment from here on: that of another clock.
    pub fn count_from(&mut self, now: Instant) {
        self.now = now;
    }

    /// The hasher that has taken everything.
    pub fn finish(self) -> H {
        self.hasher
    }
}

fn number<T: PartialEq>(known: &mut Vec<T>, value: T) -> usize {
    match known.iter().position(|one| *one == value) {
        Some(number) => number,
        None => {
            known.push(value);
            known.len() - 1
        }
    }
}
