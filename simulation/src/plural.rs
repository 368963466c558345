//! Numerals.

/// The noun that goes with a number: `client` or `clients`.
pub fn plural<N: PartialEq + From<u8>>(noun: &str, number: N) -> String {
    let ending = if number == N::from(1) { "" } else { "s" };
    format!("{noun}{ending}")
}
