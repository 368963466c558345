//! Which tokens may be served.

use super::Broken;
use chronicle_connection::NormalForm;
use std::hash::Hasher;

/// The generations of a machine's tokens.
#[derive(Debug, Clone, Default)]
pub(super) struct Tokens {
    /// The newest that was fetched.
    newest: u64,
    /// The newest that a server rejected, of the machine's requests or of the application's.
    rejected: u64,
    /// Something has changed, and what is served now was not looked at yet.
    is_news: bool,
}

impl Tokens {
    /// One was fetched, or was not.
    pub(super) fn told(&mut self, newest: u64) {
        self.newest = newest;
        self.is_news = true;
    }

    /// The newest that was fetched.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// One was rejected. Of those that come later, an application knows nothing.
    pub(super) fn reject(&mut self, generation: u64) {
        self.rejected = self.rejected.max(generation.min(self.newest));
        self.is_news = true;
    }

    /// What was rejected is never served again; 0 is no token.
    pub(super) fn settled(&mut self, served: impl FnOnce() -> u64) -> Result<(), Broken> {
        if !std::mem::take(&mut self.is_news) {
            return Ok(());
        }
        let (served, rejected) = (served(), self.rejected);
        Broken::unless(served == 0 || served > rejected, || {
            format!("token {served} is served, and {rejected} was rejected")
        })
    }

    /// Writes which tokens must not be served.
    pub(super) fn normal_form<H: Hasher>(&self, form: &mut NormalForm<H>) {
        let Self {
            newest,
            rejected,
            // Looked at by now.
            is_news: _,
        } = self;
        // Both rise only, and what is served is the newest, or else the one before.
        form.value((newest - rejected).min(2));
    }

    /// How far a token is behind the newest; `None` of none.
    pub(super) fn behind(&self, generation: u64) -> Option<u64> {
        (generation > 0).then(|| (self.newest - generation).min(2))
    }
}
