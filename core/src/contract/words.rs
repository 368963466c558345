//! The words of findings.

use super::{
    finding::{Incompatibility, IncompatibilityKind as Kind},
    schema::{ENUM, EnumValue, Field, GROUP, MESSAGE, Method, Schema},
};

/// What a finding means, in one sentence.
pub(super) fn explain(kind: Kind) -> &'static str {
    match kind {
        Kind::ServiceRemoved => "every call to the service fails as UNIMPLEMENTED",
        Kind::MethodRemoved => "a call to it fails as UNIMPLEMENTED",
        Kind::MethodSignatureChanged => {
            "the messages of a call are read as something that they are not"
        }
        Kind::MethodStreamingChanged => "one side waits for messages that the other never sends",
        Kind::MessageRemoved => "nobody there can read or write it under this name",
        Kind::FieldRemoved => {
            "what is sent in it is dropped without a word, even where its number is reserved"
        }
        Kind::FieldTypeChanged => "values are misread or lost",
        Kind::FieldLabelChanged => "one side counts on a list where the other has one value",
        Kind::FieldRenamed => {
            "the bytes are the same, but JSON and generated code go by the name, and the number \
             may stand for something else now"
        }
        Kind::FieldOneOfChanged => "setting one field of a oneof clears the others",
        Kind::EnumRemoved => "nobody there knows its values by name",
        Kind::EnumValueRemoved => "its number has no meaning there",
        Kind::EnumValueRenamed => {
            "the bytes are the same, but the number may stand for something else now"
        }
    }
}

/// Whether values that one side sends still reach the other depends on the type.
pub(super) fn explain_label(finding: &mut Incompatibility, was: &Field) {
    let decodes = matches!(was.kind, STRING | BYTES | MESSAGE | GROUP | 0);
    let message = match (was.repeated, decodes) {
        (false, true) => {
            "one value still decodes as a list of one, but of a list only the last is seen"
        }
        (true, true) => "lists still decode, but only their last value is seen",
        (false, false) | (true, false) => {
            "a list of numbers is packed, so neither form decodes as the other everywhere"
        }
    };
    finding.message = message.to_owned();
}

pub(super) fn method(schema: &Schema, method: &Method) -> String {
    format!("the {} {}", streaming(method), signature(schema, method))
}

pub(super) fn signature(schema: &Schema, method: &Method) -> String {
    let (input, output) = (schema.at(method.input), schema.at(method.output));
    format!("({}) returns ({})", text(input), text(output))
}

pub(super) fn streaming(method: &Method) -> &'static str {
    match (method.client_streaming, method.server_streaming) {
        (false, false) => "unary call",
        (true, false) => "client stream",
        (false, true) => "server stream",
        (true, true) => "bidirectional stream",
    }
}

pub(super) fn field(schema: &Schema, field: &Field) -> String {
    let label = if field.repeated { "repeated " } else { "" };
    let name = text(schema.at(field.name));
    format!(
        "{label}{} {name} = {}",
        type_of(schema, field),
        field.number
    )
}

pub(super) fn type_of(schema: &Schema, field: &Field) -> String {
    let name = text(schema.at(field.type_name));
    match field.kind {
        MESSAGE => format!("message {name}"),
        ENUM => format!("enum {name}"),
        GROUP => format!("group {name}"),
        0 => name,
        kind => match SCALARS.get(usize::from(kind)) {
            Some(scalar) => (*scalar).to_owned(),
            None => format!("type {kind}"),
        },
    }
}

pub(super) fn label(field: &Field) -> &'static str {
    if field.repeated {
        "repeated"
    } else {
        "singular"
    }
}

pub(super) fn oneof(schema: &Schema, field: &Field) -> String {
    match text(schema.at(field.oneof)) {
        name if name.is_empty() => "no oneof".to_owned(),
        name => format!("oneof {name}"),
    }
}

pub(super) fn value(schema: &Schema, value: &EnumValue) -> String {
    format!("{} = {}", text(schema.at(value.name)), value.number)
}

/// Names are UTF-8, as reading has seen to.
pub(super) fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

const STRING: u8 = 9;
const BYTES: u8 = 12;
/// By `FieldDescriptorProto.Type`.
const SCALARS: [&str; 19] = [
    "", "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string",
    "group", "message", "bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64",
];
