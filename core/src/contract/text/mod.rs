//! Reads proto source text as older servers return it (`GetDescriptorSet`).
//!
//! That text is no valid protobuf: a chunk for each package, one after the other, each with its own
//! `syntax` and `package`; imports that are not there; enum values that clash; a method and a
//! message of one name. So nothing is linked: names of types are looked up among messages and enums
//! alone, and stay as they are where nothing of the name is declared.

mod lexer;
mod parser;
mod resolve;

pub(super) use parser::{SCALARS, camel_case};
pub(super) use resolve::Types;

use super::{ContractError, schema::Schema};
use prost::Message as _;

impl Schema {
    /// Reads proto source text, such as a server returns for `GetDescriptorSet`: any number of
    /// files in a row, each beginning with `syntax`, imports left out.
    ///
    /// # Errors
    /// [`ContractError`] where there is no text, where it is no proto source text, is nested deeper
    /// than 98 levels, or declares a name twice with different content.
    pub fn from_source_text(text: &str) -> Result<Self, ContractError> {
        let mut set = parser::parse(text)?;
        resolve::resolve(&mut set);
        let mut schema = Self::from_descriptor_set(set.encode_to_vec())?;
        schema.from_text = true;
        Ok(schema)
    }
}

/// A contract's bytes as proto source text; `None` where they are a descriptor set, which has lengths
/// in it that are control characters or no UTF-8.
pub fn as_source_text(contract: &[u8]) -> Option<&str> {
    let text = str::from_utf8(contract).ok()?;
    let is_text = |c: char| !c.is_control() || c.is_whitespace();
    text.chars().all(is_text).then_some(text)
}
