//! What a session cannot do without, merged into every contract.

use super::{ContractError, schema::Schema, set::decode};
use bytes::{Bytes, BytesMut};
use chronicle_connection_proto::SESSION_DESCRIPTOR_SET;
use prost::Message as _;
use prost_types::FileDescriptorProto;
use std::collections::BTreeMap;

/// Adds what the session needs, unless the set has it. The bytes are otherwise left as they are.
pub(super) fn with_session(own: Schema) -> Result<Schema, ContractError> {
    if let Some(service) = own.find(&own.services, SESSION_NAME.as_bytes()) {
        let has = |name: &str| {
            let mut methods = own.methods(service).iter();
            methods.any(|method| own.at(method.name) == name.as_bytes())
        };
        return match SESSION_METHODS.into_iter().find(|name| !has(name)) {
            Some(missing) => Err(ContractError::MissingMethod(missing)),
            None => Ok(own),
        };
    }
    let has_file = |name: &str| {
        own.files
            .iter()
            .any(|file| own.at(file.name) == name.as_bytes())
    };
    let is_taken = |name: &str| has_file(name) || own.declares(name);
    let mut session = decode(SESSION_DESCRIPTOR_SET)?;
    // An import that is there already serves the session as well.
    session
        .file
        .retain(|file| !file.service.is_empty() || !has_file(file.name()));
    if let Some(name) = session
        .file
        .iter()
        .flat_map(names)
        .find(|name| is_taken(name))
    {
        return Err(ContractError::Clash(name));
    }
    // Sets concatenate as bytes (protobuf merges repeated fields), so nothing of the set is lost.
    let mut merged = BytesMut::from(own.bytes);
    merged.extend_from_slice(&session.encode_to_vec());
    Schema::from_descriptor_set(merged.freeze())
}

/// Refuses what servers cannot read: two different files of one name.
pub(super) fn check_files(schema: &Schema) -> Result<(), ContractError> {
    let mut by_name: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
    for file in &schema.files {
        let (name, place) = (schema.at(file.name), schema.at(file.place));
        if by_name
            .insert(name, place)
            .is_some_and(|earlier| earlier != place)
        {
            let name = String::from_utf8_lossy(name).into_owned();
            return Err(ContractError::FileTwice(name));
        }
    }
    Ok(())
}

/// The contract of a session alone.
pub(super) fn session() -> Bytes {
    Bytes::from_static(SESSION_DESCRIPTOR_SET)
}

/// The names that a file takes: its own and those of its messages.
fn names(file: &FileDescriptorProto) -> impl Iterator<Item = String> {
    let messages = file.message_type.iter();
    messages
        .map(|message| format!("{}.{}", file.package(), message.name()))
        .chain([file.name().to_owned()])
}

pub(super) const SESSION_PACKAGE: &str = "Cratis.Chronicle.Contracts.Clients";
pub(super) const SESSION_SERVICE: &str = "ConnectionService";
/// The oldest version that has what a session needs, so that no server expects more.
pub(super) const SESSION_PROTOCOL_VERSION: &str = "15.7.1";
const SESSION_NAME: &str = "Cratis.Chronicle.Contracts.Clients.ConnectionService";
const SESSION_METHODS: [&str; 2] = ["Connect", "ConnectionKeepAlive"];
