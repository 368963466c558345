//! Why bytes or text are no contract, and why a contract cannot be written.

use super::session::{SESSION_PACKAGE, SESSION_SERVICE};
use std::fmt;

/// Why bytes or text are no contract, or a contract cannot be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContractError {
    /// There are no bytes, or no text.
    Empty,
    /// There are more bytes than the 4 GiB that can be judged.
    TooLarge(usize),
    /// The bytes are no serialized `FileDescriptorSet`; with the reason and the place.
    Undecodable(String),
    /// The text is no proto source text.
    Text {
        /// The line, counted from 1.
        line: u32,
        /// What is wrong there.
        what: String,
    },
    /// A name is declared twice, with different content.
    DeclaredTwice(String),
    /// No file of the set declares a service.
    NoService,
    /// There is no service of this name, though it was asked for.
    NoSuchService(String),
    /// The set has two different files of this name.
    FileTwice(String),
    /// The set declares the session's service without this method.
    MissingMethod(&'static str),
    /// The set lacks the session's service, and it cannot be added, because the set has a file of
    /// the same name or another message of the same name.
    Clash(String),
    /// The contract cannot be written.
    NotWritable {
        /// What of it.
        what: String,
        /// Why not, as the rest of a sentence.
        why: String,
    },
}

impl fmt::Display for ContractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str(
                "the contract is empty; hand in the bytes that protoc writes with \
                 --descriptor_set_out --include_imports, or proto source text",
            ),
            Self::TooLarge(length) => write!(
                f,
                "the descriptor set has {length} bytes, and no more than 4 GiB can be judged; \
                 leave out what is not compared, such as source info"
            ),
            Self::Undecodable(error) => write!(
                f,
                "the bytes are no serialized FileDescriptorSet ({error}); hand in what protoc \
                 writes with --descriptor_set_out --include_imports"
            ),
            Self::Text { line, what } => write!(
                f,
                "the text is no proto source text: line {line}: {what}; hand in the text as a \
                 server returned it"
            ),
            Self::DeclaredTwice(symbol) => write!(
                f,
                "the contract declares {symbol} twice, with different content; keep one of them"
            ),
            Self::NoService => f.write_str(
                "the contract declares no service; hand in the server's contract with all its \
                 files",
            ),
            Self::NoSuchService(name) => write!(
                f,
                "the contract declares no service {name}; name services with their package"
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
            Self::NotWritable { what, why } => {
                write!(f, "the contract cannot be written: {what} {why}")
            }
        }
    }
}

impl std::error::Error for ContractError {}
