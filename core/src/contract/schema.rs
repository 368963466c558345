//! The normal form of a descriptor set.

use super::{ContractError, order, read};
use bytes::Bytes;
use std::{fmt, ops::Range};

/// What a descriptor set declares: services, messages and enums by full name, methods by name,
/// fields and enum values by number. Files, comments, options and the order of anything do not
/// matter.
///
/// Types are never linked: a name that a field bears need not be declared. So sets that protobuf
/// compilers refuse, such as those of Chronicle 17, can be judged.
///
/// The default one declares nothing.
#[derive(Clone, Default)]
pub struct Schema {
    /// Where most names lie.
    pub(super) bytes: Bytes,
    /// Full names, one after the other.
    pub(super) names: Vec<u8>,
    pub(super) services: Vec<Declared>,
    pub(super) methods: Vec<Method>,
    pub(super) messages: Vec<Declared>,
    pub(super) fields: Vec<Field>,
    pub(super) enums: Vec<Declared>,
    pub(super) values: Vec<EnumValue>,
    /// In the order of the set.
    pub(super) files: Vec<File>,
    /// The names of files that are imported and not in the set, in order.
    pub(super) missing_files: Vec<Span>,
    /// Whether it was read from source text, which carries less than a set.
    pub(super) from_text: bool,
}

impl Schema {
    /// Reads a serialized `FileDescriptorSet`.
    ///
    /// # Errors
    /// [`ContractError`] where the bytes are empty or no such set, are nested deeper than 100
    /// levels, or declare a name twice with different content.
    pub fn from_descriptor_set(bytes: impl Into<Bytes>) -> Result<Self, ContractError> {
        let mut schema = read::read(bytes.into())?;
        order::order(&mut schema)?;
        Ok(schema)
    }

    /// The serialized `FileDescriptorSet`: the one that was read, or one that says what the source
    /// text said.
    pub fn descriptor_set(&self) -> &Bytes {
        &self.bytes
    }

    /// Whether any service is declared.
    pub fn has_services(&self) -> bool {
        !self.services.is_empty()
    }

    /// Whether a gRPC path, `/package.Service/Method`, is that of a declared unary method.
    pub fn is_unary(&self, path: &str) -> bool {
        let names = path.strip_prefix('/').and_then(|path| path.split_once('/'));
        let Some((service, method)) = names else {
            return false;
        };
        let service = self.find(&self.services, service.as_bytes());
        let methods = service.map(|service| self.methods(service));
        methods.unwrap_or_default().iter().any(|one| {
            let is_unary = !one.client_streaming && !one.server_streaming;
            is_unary && self.at(one.name) == method.as_bytes()
        })
    }

    pub(super) fn full_name(&self, declared: &Declared) -> &[u8] {
        &self.names[declared.name.range()]
    }

    /// Something that lies in the bytes of the set.
    pub(super) fn at(&self, span: Span) -> &[u8] {
        &self.bytes[span.range()]
    }

    pub(super) fn methods(&self, service: &Declared) -> &[Method] {
        &self.methods[service.members()]
    }

    pub(super) fn fields(&self, message: &Declared) -> &[Field] {
        &self.fields[message.members()]
    }

    pub(super) fn values(&self, declared: &Declared) -> &[EnumValue] {
        &self.values[declared.members()]
    }

    /// Whether a service, message or enum of this full name is declared.
    pub(super) fn declares(&self, name: &str) -> bool {
        [&self.services, &self.messages, &self.enums]
            .into_iter()
            .any(|declared| self.find(declared, name.as_bytes()).is_some())
    }

    /// The place of a declaration among its kind.
    pub(super) fn key(&self, declared: &Declared) -> (u64, &[u8]) {
        (declared.scope, self.full_name(declared))
    }

    pub(super) fn find<'a>(&self, among: &'a [Declared], name: &[u8]) -> Option<&'a Declared> {
        let key = (scope_of(name), name);
        let found = among.binary_search_by(|declared| self.key(declared).cmp(&key));
        found.ok().map(|index| &among[index])
    }
}

/// Equal where they declare the same, wherever that was read.
impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        order::same(self, other)
    }
}

impl Eq for Schema {}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema")
            .field("services", &self.services.len())
            .field("messages", &self.messages.len())
            .field("enums", &self.enums.len())
            .finish_non_exhaustive()
    }
}

/// A place in the bytes of a set, or among the full names.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) length: u32,
}

impl Span {
    /// Places in what is read, and in what is made of it, are below 4 GiB.
    pub(super) fn between(start: usize, end: usize) -> Self {
        Self {
            start: start as u32,
            length: (end - start) as u32,
        }
    }

    pub(super) fn range(self) -> Range<usize> {
        let start = self.start as usize;
        start..start + self.length as usize
    }

    pub(super) fn is_empty(self) -> bool {
        self.length == 0
    }
}

/// A service, a message or an enum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Declared {
    /// Among the full names.
    pub(super) name: Span,
    /// Of the names around it. Declarations are in order by this first: numbers compare many times
    /// faster than names that begin alike, and what is declared side by side stays so.
    pub(super) scope: u64,
    /// Among the methods, fields or enum values.
    pub(super) members: Span,
    /// The index of its file.
    pub(super) file: u32,
}

impl Declared {
    pub(super) fn members(&self) -> Range<usize> {
        self.members.range()
    }
}

/// A hash of a full name without its last part. It is the same everywhere and always. Names that
/// collide on purpose are merely compared as names.
pub(super) fn scope_of(name: &[u8]) -> u64 {
    let end = name.iter().rposition(|byte| *byte == b'.');
    let name = &name[..end.unwrap_or(0)];
    let mix = |hash: u64, word: [u8; 8]| {
        (hash.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x517c_c1b7_2722_0a95)
    };
    let (words, rest) = name.as_chunks();
    let hash = words
        .iter()
        .fold(name.len() as u64, |hash, word| mix(hash, *word));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(hash, last)
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Method {
    pub(super) name: Span,
    pub(super) input: Span,
    pub(super) output: Span,
    pub(super) client_streaming: bool,
    pub(super) server_streaming: bool,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Field {
    pub(super) number: i32,
    pub(super) name: Span,
    /// Without its leading dot; empty for a scalar.
    pub(super) type_name: Span,
    /// Empty where the field is in none; the made-up one of a proto3 `optional` is none.
    pub(super) oneof: Span,
    /// As in `FieldDescriptorProto.Type`; 0 for a named type of unknown kind.
    pub(super) kind: u8,
    pub(super) repeated: bool,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EnumValue {
    pub(super) number: i32,
    pub(super) name: Span,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct File {
    pub(super) name: Span,
    /// The whole file in the bytes of the set.
    pub(super) place: Span,
}

pub(super) const GROUP: u8 = 10;
pub(super) const MESSAGE: u8 = 11;
pub(super) const ENUM: u8 = 14;
