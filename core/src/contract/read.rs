//! Reads a serialized `FileDescriptorSet` into the normal form.
//!
//! The numbers of fields are those of `google/protobuf/descriptor.proto`. A declaration's own
//! fields are walked before what is nested in it, so that members lie next to each other; what is
//! nested is skipped in one step then.

use super::{
    ContractError,
    schema::{Declared, EnumValue, Field, File, Method, Schema, Span, scope_of},
    wire::{MAX_NESTING, Malformed, TOO_DEEP, Value, Wire},
};
use bytes::Bytes;

/// Reads the bytes; what comes out is in the order of the set.
pub(super) fn read(bytes: Bytes) -> Result<Schema, ContractError> {
    if bytes.is_empty() {
        return Err(ContractError::Empty);
    }
    // So that any place in the bytes, and any length of all names, is a `u32`.
    if bytes.len() > MAX_LENGTH {
        return Err(ContractError::TooLarge(bytes.len()));
    }
    let mut reader = Reader {
        bytes: &bytes,
        schema: Schema {
            // Guesses at what such a set declares, which spare growing.
            names: Vec::with_capacity(bytes.len() / 4),
            fields: Vec::with_capacity(bytes.len() / 70),
            ..Schema::default()
        },
        dependencies: Vec::new(),
        oneofs: Vec::new(),
        file: 0,
        max_names: bytes
            .len()
            .saturating_mul(8)
            .saturating_add(1 << 20)
            .min(MAX_LENGTH),
    };
    match reader.set(Wire::new(&bytes)) {
        Ok(()) => {}
        Err(Malformed { at, what }) => {
            return Err(ContractError::Undecodable(format!("{what}, at byte {at}")));
        }
    }
    let Reader {
        mut schema,
        dependencies,
        ..
    } = reader;
    schema.bytes = bytes;
    schema.missing_files = dependencies;
    Ok(schema)
}

struct Reader<'a> {
    bytes: &'a [u8],
    schema: Schema,
    dependencies: Vec<Span>,
    /// The names of the oneofs of the message at hand.
    oneofs: Vec<Span>,
    /// The index of the file at hand.
    file: u32,
    /// Every declaration repeats the names around it; a bound on what hostile bytes make of that.
    max_names: usize,
}

type Read<T = ()> = Result<T, Malformed>;

impl Reader<'_> {
    fn set(&mut self, mut wire: Wire<'_>) -> Read {
        while let Some((number, value)) = wire.next()? {
            if number == 1 {
                self.file(wire.message(value)?)?;
                self.file += 1;
            }
        }
        Ok(())
    }

    fn file(&mut self, mut wire: Wire<'_>) -> Read {
        let whole = wire;
        let place = whole.span();
        let mut name = Span::default();
        let mut package = Span::default();
        while let Some((number, value)) = wire.next()? {
            match number {
                1 => name = wire.text(value)?,
                2 => package = wire.text(value)?,
                3 => self.dependencies.push(wire.text(value)?),
                _ => {}
            }
        }
        self.schema.files.push(File { name, place });
        let package = self.copy_name(package);
        let mut wire = whole;
        while let Some((number, value)) = wire.next()? {
            match number {
                4 => self.message(wire.message(value)?, package, MAX_NESTING - 2)?,
                5 => self.enumeration(wire.message(value)?, package)?,
                6 => self.service(wire.message(value)?, package)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn message(&mut self, mut wire: Wire<'_>, scope: Span, levels: usize) -> Read {
        if levels == 0 {
            return wire.malformed(TOO_DEEP);
        }
        let whole = wire;
        let mut name = Span::default();
        let first = self.schema.fields.len();
        self.oneofs.clear();
        let mut has_nested = false;
        while let Some((number, value)) = wire.next()? {
            match number {
                1 => name = wire.text(value)?,
                2 => {
                    let field = field(wire.message(value)?)?;
                    self.schema.fields.push(field);
                }
                3 | 4 => has_nested = true,
                8 => {
                    let oneof = only_name(wire.message(value)?)?;
                    self.oneofs.push(oneof);
                }
                _ => {}
            }
        }
        for field in &mut self.schema.fields[first..] {
            // `field` left the index here, counted from one.
            if let Some(index) = field.oneof.length.checked_sub(1) {
                let Some(oneof) = self.oneofs.get(index as usize) else {
                    return wire.malformed("a field of a oneof that is not there");
                };
                field.oneof = *oneof;
            }
        }
        let members = Span::between(first, self.schema.fields.len());
        let declared = self.declare(&whole, scope, name, members)?;
        self.schema.messages.push(declared);
        if !has_nested {
            return Ok(());
        }
        let mut wire = whole;
        while let Some((number, value)) = wire.next()? {
            match number {
                3 => self.message(wire.message(value)?, declared.name, levels - 1)?,
                4 => self.enumeration(wire.message(value)?, declared.name)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn enumeration(&mut self, mut wire: Wire<'_>, scope: Span) -> Read {
        let mut name = Span::default();
        let first = self.schema.values.len();
        while let Some((number, value)) = wire.next()? {
            match number {
                1 => name = wire.text(value)?,
                2 => {
                    let value = enum_value(wire.message(value)?)?;
                    self.schema.values.push(value);
                }
                _ => {}
            }
        }
        let members = Span::between(first, self.schema.values.len());
        let declared = self.declare(&wire, scope, name, members)?;
        self.schema.enums.push(declared);
        Ok(())
    }

    fn service(&mut self, mut wire: Wire<'_>, scope: Span) -> Read {
        let mut name = Span::default();
        let first = self.schema.methods.len();
        while let Some((number, value)) = wire.next()? {
            match number {
                1 => name = wire.text(value)?,
                2 => {
                    let method = method(wire.message(value)?)?;
                    self.schema.methods.push(method);
                }
                _ => {}
            }
        }
        let members = Span::between(first, self.schema.methods.len());
        let declared = self.declare(&wire, scope, name, members)?;
        self.schema.services.push(declared);
        Ok(())
    }

    /// Writes down the full name of a declaration.
    fn declare(
        &mut self,
        wire: &Wire<'_>,
        scope: Span,
        name: Span,
        members: Span,
    ) -> Read<Declared> {
        if name.is_empty() {
            return wire.malformed("a declaration without a name");
        }
        let names = &mut self.schema.names;
        let start = names.len();
        names.extend_from_within(scope.range());
        if !scope.is_empty() {
            names.push(b'.');
        }
        names.extend_from_slice(&self.bytes[name.range()]);
        if names.len() > self.max_names {
            return wire.malformed("full names that are too long");
        }
        Ok(Declared {
            name: Span::between(start, names.len()),
            scope: scope_of(&names[start..]),
            members,
            file: self.file,
        })
    }

    fn copy_name(&mut self, name: Span) -> Span {
        let start = self.schema.names.len();
        self.schema
            .names
            .extend_from_slice(&self.bytes[name.range()]);
        Span::between(start, self.schema.names.len())
    }
}

fn field(mut wire: Wire<'_>) -> Read<Field> {
    let mut field = Field::default();
    let mut oneof_index = None;
    let mut optional = false;
    while let Some((number, value)) = wire.next()? {
        match number {
            1 => field.name = wire.text(value)?,
            3 => field.number = wire.number(value)?,
            4 => field.repeated = wire.number(value)? == REPEATED,
            5 => match u8::try_from(wire.number(value)?) {
                Ok(kind) => field.kind = kind,
                Err(_) => return wire.malformed("a type out of range"),
            },
            6 => field.type_name = wire.type_name(value)?,
            9 => oneof_index = Some(wire.number(value)?),
            17 => optional = wire.number(value)? != 0,
            _ => {}
        }
    }
    if field.name.is_empty() {
        return wire.malformed("a field without a name");
    }
    if let Some(index) = oneof_index.filter(|_| !optional) {
        match u32::try_from(index) {
            // The oneofs are not known yet.
            Ok(index) => field.oneof.length = index + 1,
            Err(_) => return wire.malformed("a field of a oneof that is not there"),
        }
    }
    Ok(field)
}

fn enum_value(mut wire: Wire<'_>) -> Read<EnumValue> {
    let mut read = EnumValue::default();
    while let Some((number, value)) = wire.next()? {
        match number {
            1 => read.name = wire.text(value)?,
            2 => read.number = wire.number(value)?,
            _ => {}
        }
    }
    if read.name.is_empty() {
        return wire.malformed("an enum value without a name");
    }
    Ok(read)
}

fn method(mut wire: Wire<'_>) -> Read<Method> {
    let mut method = Method::default();
    while let Some((number, value)) = wire.next()? {
        match number {
            1 => method.name = wire.text(value)?,
            2 => method.input = wire.type_name(value)?,
            3 => method.output = wire.type_name(value)?,
            5 => method.client_streaming = wire.number(value)? != 0,
            6 => method.server_streaming = wire.number(value)? != 0,
            _ => {}
        }
    }
    if method.name.is_empty() {
        return wire.malformed("a method without a name");
    }
    Ok(method)
}

fn only_name(mut wire: Wire<'_>) -> Read<Span> {
    let mut name = Span::default();
    while let Some((number, value)) = wire.next()? {
        if number == 1 {
            name = wire.text(value)?;
        }
    }
    if name.is_empty() {
        return wire.malformed("a oneof without a name");
    }
    Ok(name)
}

impl<'a> Wire<'a> {
    fn message(&self, value: Value<'a>) -> Read<Self> {
        match value {
            Value::Bytes(wire) => Ok(wire),
            Value::Varint(_) | Value::Other => self.malformed("a number where there must be none"),
        }
    }

    fn text(&self, value: Value<'a>) -> Read<Span> {
        let text = self.message(value)?;
        let bytes = text.bytes();
        // The quick test first: names hardly ever have other letters.
        if !bytes.is_ascii() && str::from_utf8(bytes).is_err() {
            return text.malformed("text that is not UTF-8");
        }
        Ok(text.span())
    }

    fn type_name(&self, value: Value<'a>) -> Read<Span> {
        let Span { start, length } = self.text(value)?;
        Ok(match self.message(value)?.bytes().first() {
            Some(b'.') => Span {
                start: start + 1,
                length: length - 1,
            },
            Some(_) | None => Span { start, length },
        })
    }

    /// An `int32`, an enum or a `bool`.
    fn number(&self, value: Value<'a>) -> Read<i32> {
        match value {
            // As protobuf has it: the upper half of a number that is too long does not count.
            Value::Varint(number) => Ok(number as i32),
            Value::Bytes(_) | Value::Other => self.malformed("no number where there must be one"),
        }
    }
}

const MAX_LENGTH: usize = u32::MAX as usize;
/// `FieldDescriptorProto.Label.LABEL_REPEATED`
const REPEATED: i32 = 3;
