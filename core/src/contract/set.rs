//! What everybody needs who takes a descriptor set apart.

use super::ContractError;
use prost::Message as _;
use prost_types::FileDescriptorSet;

pub(super) fn decode(bytes: &[u8]) -> Result<FileDescriptorSet, ContractError> {
    FileDescriptorSet::decode(bytes).map_err(|error| ContractError::Undecodable(error.to_string()))
}

/// The full name of what is declared in a package, or in a message.
pub(super) fn join(scope: &str, name: &str) -> String {
    match scope {
        "" => name.to_owned(),
        scope => format!("{scope}.{name}"),
    }
}
