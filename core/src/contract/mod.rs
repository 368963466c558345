//! The contract that this client shows to a server (S2, "The wire-compatibility handshake"), and
//! the judgement over two of them.

mod compare;
mod diff;
mod error;
mod finding;
mod lens;
mod only;
mod order;
mod read;
mod schema;
mod session;
mod set;
mod show;
mod text;
mod version;
mod wire;
mod words;
mod write;

pub use compare::{Comparison, compare};
pub use diff::diff;
pub use error::ContractError;
pub use finding::{Incompatibility, IncompatibilityKind};
pub use schema::Schema;
pub use text::as_source_text;
pub use version::{is_newer, is_version};
pub use write::ProtoFile;

use bytes::Bytes;
use session::{SESSION_PROTOCOL_VERSION, check_files, with_session};
use std::sync::Arc;

/// A protobuf contract: what is compared before a connection is usable.
///
/// The default one is what a session itself cannot do without. It claims protocol version 15.7.1,
/// the oldest that has it, so that no server expects more of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    schema: Arc<Schema>,
    protocol_version: String,
    /// What the server is told instead, for a contract that is only a part.
    claimed_version: Option<&'static str>,
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
        let schema = Schema::from_descriptor_set(descriptor_set)?;
        check_files(&schema)?;
        if !schema.has_services() {
            return Err(ContractError::NoService);
        }
        Ok(Self {
            schema: Arc::new(with_session(schema)?),
            protocol_version: protocol_version.into(),
            claimed_version: None,
        })
    }

    /// Takes the contract of a server as proto source text, the way older servers return it, and the
    /// version that it belongs to.
    ///
    /// What text leaves out is completed, as [`Schema::to_descriptor_set`] says.
    ///
    /// # Errors
    /// [`ContractError`] where the text is no proto source text, or declares no contract that any
    /// server could read.
    pub fn from_source_text(
        text: &str,
        protocol_version: impl Into<String>,
    ) -> Result<Self, ContractError> {
        let set = Schema::from_source_text(text)?.to_descriptor_set()?;
        Self::from_descriptor_set(set, protocol_version)
    }

    /// The part of this contract that these services need, named with their packages, and what the
    /// session needs.
    ///
    /// A server that lacks a service or method refuses; so declare what the application uses. The
    /// part claims protocol version 15.7.1 towards servers: those of a later version take their own
    /// contract as the expected side, and would miss the rest. It keeps its own version for what is
    /// compared on this side, and for texts.
    ///
    /// # Errors
    /// [`ContractError::NoSuchService`] for a service that this contract does not declare.
    pub fn only(&self, services: &[&str]) -> Result<Self, ContractError> {
        Ok(Self {
            schema: Arc::new(with_session(only::only(&self.schema, services)?)?),
            protocol_version: self.protocol_version.clone(),
            claimed_version: Some(SESSION_PROTOCOL_VERSION),
        })
    }

    /// What the contract declares, in the form that is compared.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The serialized `FileDescriptorSet` that is sent to the server.
    pub fn descriptor_set(&self) -> &Bytes {
        self.schema.descriptor_set()
    }

    /// The version of the contract.
    pub fn protocol_version(&self) -> &str {
        &self.protocol_version
    }

    /// The version that is sent to the server: the contract's own, unless the contract is a part of
    /// another.
    pub fn claimed_version(&self) -> &str {
        self.claimed_version.unwrap_or(&self.protocol_version)
    }
}

impl Default for Contract {
    #[allow(
        clippy::expect_used,
        reason = "the bytes are a constant, and a test reads them"
    )]
    fn default() -> Self {
        let schema = Schema::from_descriptor_set(session::session());
        Self {
            schema: Arc::new(schema.expect("the session's contract can be read")),
            protocol_version: SESSION_PROTOCOL_VERSION.to_owned(),
            claimed_version: None,
        }
    }
}
