//! The connection service of Chronicle: its messages as prost types, and the contract of a session
//! as a serialized `FileDescriptorSet`.
//!
//! Everything under `generated` comes from `protos/` and is committed, so that nobody who builds
//! this needs protoc or a build script. `tests/generated.rs` compares the two, and writes the files
//! anew with `CHRONICLE_REGENERATE=1 cargo test -p chronicle-connection-proto`.

/// Messages of the package `Cratis.Chronicle.Contracts.Clients`.
#[allow(missing_docs, reason = "generated")]
pub mod clients {
    include!("generated/clients.rs");
}

/// Messages of the package `Cratis.Chronicle.Contracts.Host`.
#[allow(missing_docs, reason = "generated")]
pub mod host {
    include!("generated/host.rs");
}

/// Paths of the methods that a session calls.
pub mod paths {
    /// Server stream: registers a client.
    pub const CONNECT: &str = "/Cratis.Chronicle.Contracts.Clients.ConnectionService/Connect";
    /// Unary: answers a keep-alive.
    pub const CONNECTION_KEEP_ALIVE: &str =
        "/Cratis.Chronicle.Contracts.Clients.ConnectionService/ConnectionKeepAlive";
    /// Unary: the server's contract as proto source text.
    pub const GET_DESCRIPTOR_SET: &str =
        "/Cratis.Chronicle.Contracts.Clients.ConnectionService/GetDescriptorSet";
    /// Unary: compares contracts.
    pub const CHECK_COMPATIBILITY: &str =
        "/Cratis.Chronicle.Contracts.Clients.ConnectionService/CheckCompatibility";
    /// Unary: the server's version.
    pub const GET_VERSION_INFO: &str = "/Cratis.Chronicle.Contracts.Host.Server/GetVersionInfo";
}

/// What a session cannot do without, as a serialized `FileDescriptorSet` with its imports:
/// `Connect` and `ConnectionKeepAlive` with the fields that every server since 15.7 has.
pub const SESSION_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/session.desc");

/// What contracts import and older servers leave out of their source text, as a serialized
/// `FileDescriptorSet`: the types of protobuf-net in `bcl.proto`, and the files of
/// `google/protobuf` that are types of messages.
pub const IMPORTS_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/imports.desc");
