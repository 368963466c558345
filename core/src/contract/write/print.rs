//! Prints descriptors as proto source text.
//!
//! References to types are written in full, with a leading dot: in a service, the name of a method
//! would otherwise hide a message of the same name.

use super::{ProtoFile, not_writable, packages::BROUGHT_BY_COMPILERS};
use crate::contract::{
    ContractError,
    set::join,
    text::{SCALARS, Types, camel_case},
};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    FileDescriptorSet, ServiceDescriptorProto,
    field_descriptor_proto::{Label, Type},
};
use std::collections::BTreeMap;

/// Every file but those that compilers bring.
pub(super) fn print(set: &FileDescriptorSet) -> Result<Vec<ProtoFile>, ContractError> {
    let types = Types::of(set);
    let mut files = Vec::new();
    let mut folded: BTreeMap<String, &str> = BTreeMap::new();
    for file in &set.file {
        if file.name().starts_with(BROUGHT_BY_COMPILERS) {
            continue;
        }
        if let Some(other) = folded.insert(file.name().to_lowercase(), file.name()) {
            return not_writable(
                file.name(),
                format!("is the same name as {other} on many file systems"),
            );
        }
        let mut printer = Printer {
            types: &types,
            is_proto3: file.syntax.is_some(),
            content: String::new(),
            indent: 0,
        };
        printer.file(file)?;
        files.push(ProtoFile {
            name: file.name().to_owned(),
            content: printer.content,
        });
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

struct Printer<'a> {
    types: &'a Types,
    is_proto3: bool,
    content: String,
    indent: usize,
}

type Printed<T = ()> = Result<T, ContractError>;

impl Printer<'_> {
    fn file(&mut self, file: &FileDescriptorProto) -> Printed {
        let package = file.package();
        for part in package.split('.').filter(|_| !package.is_empty()) {
            identifier(package, part)?;
        }
        let syntax = file.syntax.as_deref().unwrap_or("proto2");
        if !["proto2", "proto3"].contains(&syntax) {
            return not_writable(
                file.name(),
                format!("is of the syntax {syntax:?}, and only proto2 and proto3 are written"),
            );
        }
        self.line(format_args!("syntax = \"{syntax}\";"));
        if !package.is_empty() {
            self.line(format_args!("\npackage {package};"));
        }
        for (index, import) in file.dependency.iter().enumerate() {
            let is_safe = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
            if !import.chars().all(is_safe) {
                return not_writable(file.name(), format!("imports {import:?}, which is no name"));
            }
            let gap = if index == 0 { "\n" } else { "" };
            self.line(format_args!("{gap}import \"{import}\";"));
        }
        for service in &file.service {
            self.content.push('\n');
            self.service(package, service)?;
        }
        for message in &file.message_type {
            self.content.push('\n');
            self.message(package, message)?;
        }
        for declared in &file.enum_type {
            self.content.push('\n');
            self.enumeration(package, declared)?;
        }
        Ok(())
    }

    fn service(&mut self, scope: &str, service: &ServiceDescriptorProto) -> Printed {
        let path = join(scope, identifier(scope, service.name())?);
        self.line(format_args!("service {} {{", service.name()));
        for method in &service.method {
            let name = identifier(&path, method.name())?;
            let side = |streaming: bool, type_name: &str| {
                let known = self.types.kind(type_name);
                if known != Some(Type::Message) {
                    return not_of(&path, name, type_name, known, Type::Message);
                }
                let stream = if streaming { "stream " } else { "" };
                Ok(format!("({stream}{type_name})"))
            };
            let input = side(method.client_streaming(), method.input_type())?;
            let output = side(method.server_streaming(), method.output_type())?;
            self.line(format_args!("  rpc {name}{input} returns {output};"));
        }
        self.line(format_args!("}}"));
        Ok(())
    }

    fn message(&mut self, scope: &str, message: &DescriptorProto) -> Printed {
        let path = join(scope, identifier(scope, message.name())?);
        self.line(format_args!("message {} {{", message.name()));
        self.indent += 1;
        let mut maps: Vec<&str> = Vec::new();
        let mut printed_oneofs: Vec<i32> = Vec::new();
        for field in &message.field {
            let in_oneof = field.oneof_index.filter(|_| !field.proto3_optional());
            if let Some(index) = in_oneof {
                if !printed_oneofs.contains(&index) {
                    printed_oneofs.push(index);
                    self.oneof(&path, message, index)?;
                }
            } else if let Some(entry) = map_entry(&path, message, field) {
                maps.push(entry.name());
                self.map(&path, field, entry)?;
            } else {
                let label = self.label(field);
                self.field(&path, label, field)?;
            }
        }
        for nested in &message.nested_type {
            if !maps.contains(&nested.name()) {
                self.message(&path, nested)?;
            }
        }
        for declared in &message.enum_type {
            self.enumeration(&path, declared)?;
        }
        self.indent -= 1;
        self.line(format_args!("}}"));
        Ok(())
    }

    fn oneof(&mut self, path: &str, message: &DescriptorProto, index: i32) -> Printed {
        let declared = usize::try_from(index).ok();
        let declared = declared.and_then(|index| message.oneof_decl.get(index));
        let name = declared.map(|oneof| oneof.name()).unwrap_or_default();
        self.line(format_args!("oneof {} {{", identifier(path, name)?));
        self.indent += 1;
        let is_in = |field: &&FieldDescriptorProto| {
            field.oneof_index == Some(index) && !field.proto3_optional()
        };
        for field in message.field.iter().filter(is_in) {
            self.field(path, "", field)?;
        }
        self.indent -= 1;
        self.line(format_args!("}}"));
        Ok(())
    }

    fn map(
        &mut self,
        path: &str,
        field: &FieldDescriptorProto,
        entry: &DescriptorProto,
    ) -> Printed {
        let name = identifier(path, field.name())?;
        let key = self.type_of(path, &entry.field[0])?;
        let value = self.type_of(path, &entry.field[1])?;
        let number = number(path, field)?;
        self.line(format_args!("map<{key}, {value}> {name} = {number};"));
        Ok(())
    }

    fn label(&self, field: &FieldDescriptorProto) -> &'static str {
        match field.label() {
            Label::Repeated => "repeated ",
            Label::Required => "required ",
            Label::Optional if !self.is_proto3 || field.proto3_optional() => "optional ",
            Label::Optional => "",
        }
    }

    fn field(&mut self, path: &str, label: &str, field: &FieldDescriptorProto) -> Printed {
        let name = identifier(path, field.name())?;
        let type_of = self.type_of(path, field)?;
        let number = number(path, field)?;
        let options = match field.options.as_ref().and_then(|options| options.packed) {
            Some(packed) => format!(" [packed = {packed}]"),
            None => String::new(),
        };
        self.line(format_args!("{label}{type_of} {name} = {number}{options};"));
        Ok(())
    }

    fn type_of(&self, path: &str, field: &FieldDescriptorProto) -> Printed<String> {
        let kind = field.r#type.and_then(|kind| Type::try_from(kind).ok());
        match kind {
            Some(Type::Group) => not_writable(
                join(path, field.name()),
                "is a group, which is not written; make it a message",
            ),
            Some(wanted @ (Type::Message | Type::Enum)) => {
                match self.types.kind(field.type_name()) {
                    Some(known) if known == wanted => Ok(field.type_name().to_owned()),
                    known => not_of(path, field.name(), field.type_name(), known, wanted),
                }
            }
            // Its kind was looked up, where it had none.
            None => not_of(path, field.name(), field.type_name(), None, Type::Message),
            Some(kind) => match SCALARS.iter().find(|(_, scalar)| *scalar == kind) {
                Some((name, _)) => Ok((*name).to_owned()),
                None => not_of(path, field.name(), kind.as_str_name(), None, kind),
            },
        }
    }

    fn enumeration(&mut self, scope: &str, declared: &EnumDescriptorProto) -> Printed {
        let path = join(scope, identifier(scope, declared.name())?);
        let Some(first) = declared.value.first() else {
            return not_writable(path, "has no values, and an enum needs one; add it");
        };
        if self.is_proto3 && first.number() != 0 {
            return not_writable(
                path,
                "has no value of number 0, which proto3 demands; add it",
            );
        }
        self.line(format_args!("enum {} {{", declared.name()));
        if declared
            .options
            .as_ref()
            .is_some_and(|options| options.allow_alias())
        {
            self.line(format_args!("  option allow_alias = true;"));
        }
        for value in &declared.value {
            let name = identifier(&path, value.name())?;
            self.line(format_args!("  {name} = {};", value.number()));
        }
        self.line(format_args!("}}"));
        Ok(())
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        let text = text.to_string();
        self.content.extend(std::iter::repeat_n("  ", self.indent));
        self.content.push_str(&text);
        self.content.push('\n');
    }
}

/// The entry of a field that can be written as `map<K, V>`; any other stays a message.
fn map_entry<'a>(
    path: &str,
    message: &'a DescriptorProto,
    field: &FieldDescriptorProto,
) -> Option<&'a DescriptorProto> {
    let name = format!("{}Entry", camel_case(field.name()));
    let entry = message
        .nested_type
        .iter()
        .find(|nested| nested.name() == name)?;
    let is_entry = entry
        .options
        .as_ref()
        .is_some_and(|options| options.map_entry());
    let is_its_own = field.type_name() == format!(".{path}.{name}");
    let [key, value] = entry.field.as_slice() else {
        return None;
    };
    let is_member = |member: &FieldDescriptorProto, name: &str, number: i32| {
        member.name() == name && member.number() == number && member.label() != Label::Repeated
    };
    let fits = is_entry
        && is_its_own
        && field.label() == Label::Repeated
        && is_member(key, "key", 1)
        && is_member(value, "value", 2)
        && KEYS.contains(&key.r#type());
    fits.then_some(entry)
}

/// What gets into the text as it is must not be able to say anything but a name.
fn identifier<'a>(scope: &str, name: &'a str) -> Printed<&'a str> {
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins_well && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Ok(name);
    }
    not_writable(format!("{name:?} in {scope:?}"), "is no name of protobuf")
}

fn number(path: &str, field: &FieldDescriptorProto) -> Printed<i32> {
    match field.number() {
        number @ (1..=18_999 | 20_000..=536_870_911) => Ok(number),
        number => not_writable(
            join(path, field.name()),
            format!("has the number {number}, which protobuf does not allow"),
        ),
    }
}

/// Refuses a reference to what is something else than is wanted, or is not there.
fn not_of<T>(
    path: &str,
    name: &str,
    type_name: &str,
    known: Option<Type>,
    wanted: Type,
) -> Printed<T> {
    let type_name = type_name.trim_start_matches('.');
    let words = |kind| match kind {
        Type::Enum => "an enum",
        _ => "a message",
    };
    let why = match known {
        Some(known) => format!(
            "which is declared as {} and used as {}; correct one of the two",
            words(known),
            words(wanted)
        ),
        None => "which is declared nowhere; add the file that declares it".to_owned(),
    };
    not_writable(
        join(path, name),
        format!("is of the type {type_name:?}, {why}"),
    )
}

const KEYS: [Type; 12] = [
    Type::Int32,
    Type::Int64,
    Type::Uint32,
    Type::Uint64,
    Type::Sint32,
    Type::Sint64,
    Type::Fixed32,
    Type::Fixed64,
    Type::Sfixed32,
    Type::Sfixed64,
    Type::Bool,
    Type::String,
];
