//! Writes contracts, so that they can be kept beside the code that goes by them.
//!
//! Whatever a contract was read from, it is written alike: a file for each package, with what it
//! imports, everything in order. What is not compared is left out, except for what generated code
//! goes by.

mod clashes;
mod packages;
mod print;

use super::{Contract, ContractError, schema::Schema};
use bytes::Bytes;
use prost::Message as _;

/// A file of proto source text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtoFile {
    /// What other files import it by: a path with `/`.
    pub name: String,
    /// The text, with a `\n` at the end of every line.
    pub content: String,
}

impl Schema {
    /// Writes a serialized `FileDescriptorSet` of a file for each package, with what they import.
    /// The same content gives the same bytes.
    ///
    /// What was read from source text is completed by what text leaves out: the types of
    /// `google.protobuf` and `bcl` that it names, and the enum's name in front of enum values that
    /// clash.
    ///
    /// # Errors
    /// [`ContractError::NotWritable`] where no such files can be: packages that import each other in
    /// a circle, or are made of files of several syntaxes.
    pub fn to_descriptor_set(&self) -> Result<Bytes, ContractError> {
        Ok(packages::packages(self)?.encode_to_vec().into())
    }

    /// Writes a .proto file for each package, as protobuf compilers take them. The files of
    /// `google.protobuf` are not among them, since every compiler brings its own.
    ///
    /// Enum values that clash with another name beside their enum, which compilers refuse, have the
    /// enum's name in front: `JOB_STATUS_Running`.
    ///
    /// # Errors
    /// [`ContractError::NotWritable`] for what no proto source text can say, such as a field of a
    /// type that nobody declares.
    pub fn to_proto_files(&self) -> Result<Vec<ProtoFile>, ContractError> {
        let mut set = packages::packages(self)?;
        clashes::prefix_clashing_values(&mut set)?;
        print::print(&set)
    }
}

impl Contract {
    /// Writes this contract as a serialized `FileDescriptorSet`; see
    /// [`Schema::to_descriptor_set`].
    ///
    /// # Errors
    /// Those of [`Schema::to_descriptor_set`].
    pub fn to_descriptor_set(&self) -> Result<Bytes, ContractError> {
        self.schema.to_descriptor_set()
    }

    /// Writes this contract as a .proto file for each package; see [`Schema::to_proto_files`].
    ///
    /// # Errors
    /// Those of [`Schema::to_proto_files`].
    pub fn to_proto_files(&self) -> Result<Vec<ProtoFile>, ContractError> {
        self.schema.to_proto_files()
    }
}

fn not_writable<T>(what: impl Into<String>, why: impl Into<String>) -> Result<T, ContractError> {
    Err(ContractError::NotWritable {
        what: what.into(),
        why: why.into(),
    })
}
