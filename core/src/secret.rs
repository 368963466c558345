//! Texts that must not be seen.

use std::fmt;
use zeroize::Zeroizing;

/// A secret: zeroized when dropped, never shown. There is no `Display`, and `Debug` prints nothing
/// of it, not even its length.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Keeps a text secret. The text is taken over, not copied, when it is a `String`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The secret itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn debug_shows_nothing_of_a_secret() {
        assert_eq!(format!("{:#?}", Secret::new("canary")), "Secret(..)");
    }
}
