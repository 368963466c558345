//! The contract that this client shows to a server (S2, "The wire-compatibility handshake").

use bytes::Bytes;

/// A protobuf contract: what is compared before a connection is usable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    descriptor_set: Bytes,
    protocol_version: String,
}

impl Contract {
    /// The serialized `FileDescriptorSet` that is sent to the server.
    pub fn descriptor_set(&self) -> &Bytes {
        &self.descriptor_set
    }

    /// The version of the contract that is sent to the server.
    pub fn protocol_version(&self) -> &str {
        &self.protocol_version
    }
}
