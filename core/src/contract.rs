//! The contract that this client shows to a server (S2, "The wire-compatibility handshake").

use bytes::{Bytes, BytesMut};
use chronicle_connection_proto::SESSION_DESCRIPTOR_SET;
use prost::Message;
use prost_types::{FileDescriptorProto, FileDescriptorSet, ServiceDescriptorProto};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// A protobuf contract: what is compared before a connection is usable.
///
/// The default one is what a session itself cannot do without. It claims protocol version 15.7.1,
/// the oldest that has it, so that no server expects more of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    descriptor_set: Bytes,
    protocol_version: String,
}

impl Contract {
    /// Takes an application's own contract: a serialized `FileDescriptorSet` with its imports, and
    /// the protocol version that it belongs to.
    ///
    /// What the session needs is added where the set lacks it. The bytes are otherwise sent as
    /// they are.
    ///
    /// # Errors
    /// [`ContractError`] where the bytes are no such set, or one that no server could read.
    pub fn from_descriptor_set(
        descriptor_set: impl Into<Bytes>,
        protocol_version: impl Into<String>,
    ) -> Result<Self, ContractError> {
        let descriptor_set = descriptor_set.into();
        if descriptor_set.is_empty() {
            return Err(ContractError::Empty);
        }
        let set = decode(&*descriptor_set)?;
        check_files(&set)?;
        Ok(Self {
            descriptor_set: with_session(descriptor_set, &set)?,
            protocol_version: protocol_version.into(),
        })
    }

    /// The serialized `FileDescriptorSet` that is sent to the server.
    pub fn descriptor_set(&self) -> &Bytes {
        &self.descriptor_set
    }

    /// The version of the contract that is sent to the server.
    pub fn protocol_version(&self) -> &str {
        &self.protocol_version
    }
}

impl Default for Contract {
    fn default() -> Self {
        Self {
            descriptor_set: Bytes::from_static(SESSION_DESCRIPTOR_SET),
            protocol_version: SESSION_PROTOCOL_VERSION.to_owned(),
        }
    }
}

/// Why bytes are no contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContractError {
    /// There are no bytes.
    Empty,
    /// The bytes are no serialized `FileDescriptorSet`; with the decoder's words.
    Undecodable(String),
    /// No file of the set declares a service.
    NoService,
    /// The set has two different files of this name.
    FileTwice(String),
    /// The set declares the session's service without this method.
    MissingMethod(&'static str),
    /// The set lacks the session's service, and it cannot be added, because the set has a file of
    /// the same name or another message of the same name.
    Clash(String),
}

impl fmt::Display for ContractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str(
                "the descriptor set is empty; hand in the bytes that protoc writes with \
                 --descriptor_set_out --include_imports",
            ),
            Self::Undecodable(error) => write!(
                f,
                "the bytes are no serialized FileDescriptorSet ({error}); hand in what protoc \
                 writes with --descriptor_set_out --include_imports"
            ),
            Self::NoService => f.write_str(
                "the descriptor set declares no service; hand in the set of the server's \
                 contract, with all its files",
            ),
            Self::FileTwice(name) => write!(
                f,
                "the descriptor set has two different files named {name}; keep one of them"
            ),
            Self::MissingMethod(method) => write!(
                f,
                "the descriptor set declares {SESSION_PACKAGE}.{SESSION_SERVICE} without the \
                 method {method}, which a session needs; complete it, or leave the service out to \
                 have it added"
            ),
            Self::Clash(name) => write!(
                f,
                "the descriptor set lacks {SESSION_PACKAGE}.{SESSION_SERVICE}, which a session \
                 needs, and it cannot be added, because {name} is taken; declare the service in \
                 the set, or rename {name}"
            ),
        }
    }
}

impl std::error::Error for ContractError {}

fn check_files(set: &FileDescriptorSet) -> Result<(), ContractError> {
    let mut by_name = BTreeMap::new();
    for file in &set.file {
        let earlier = by_name.insert(file.name(), file);
        if earlier.is_some_and(|earlier| earlier != file) {
            return Err(ContractError::FileTwice(file.name().to_owned()));
        }
    }
    if set.file.iter().all(|file| file.service.is_empty()) {
        return Err(ContractError::NoService);
    }
    Ok(())
}

/// Adds what the session needs, unless the set has it.
fn with_session(bytes: Bytes, set: &FileDescriptorSet) -> Result<Bytes, ContractError> {
    if let Some(service) = find_session_service(set) {
        let has = |name: &str| service.method.iter().any(|method| method.name() == name);
        return match SESSION_METHODS.into_iter().find(|name| !has(name)) {
            Some(missing) => Err(ContractError::MissingMethod(missing)),
            None => Ok(bytes),
        };
    }
    let taken: BTreeSet<String> = set.file.iter().flat_map(names).collect();
    let mut session = decode(SESSION_DESCRIPTOR_SET)?;
    // An import that the set has already serves the session as well.
    session
        .file
        .retain(|file| !file.service.is_empty() || !taken.contains(file.name()));
    if let Some(name) = session
        .file
        .iter()
        .flat_map(names)
        .find(|name| taken.contains(name))
    {
        return Err(ContractError::Clash(name));
    }
    // Sets concatenate as bytes (protobuf merges repeated fields), so nothing of the set is lost.
    let mut merged = BytesMut::from(bytes);
    merged.extend_from_slice(&session.encode_to_vec());
    Ok(merged.freeze())
}

fn decode(bytes: impl bytes::Buf) -> Result<FileDescriptorSet, ContractError> {
    FileDescriptorSet::decode(bytes).map_err(|error| ContractError::Undecodable(error.to_string()))
}

fn find_session_service(set: &FileDescriptorSet) -> Option<&ServiceDescriptorProto> {
    set.file
        .iter()
        .filter(|file| file.package() == SESSION_PACKAGE)
        .flat_map(|file| &file.service)
        .find(|service| service.name() == SESSION_SERVICE)
}

/// The names that a file takes: its own and those of its messages.
fn names(file: &FileDescriptorProto) -> impl Iterator<Item = String> {
    let messages = file.message_type.iter();
    messages
        .map(|message| format!("{}.{}", file.package(), message.name()))
        .chain([file.name().to_owned()])
}

const SESSION_PACKAGE: &str = "Cratis.Chronicle.Contracts.Clients";
const SESSION_SERVICE: &str = "ConnectionService";
const SESSION_METHODS: [&str; 2] = ["Connect", "ConnectionKeepAlive"];
const SESSION_PROTOCOL_VERSION: &str = "15.7.1";
