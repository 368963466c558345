//! Finds what the names of types stand for.

use crate::contract::set::join;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FileDescriptorSet, field_descriptor_proto::Type,
};
use std::collections::BTreeMap;

/// Makes the name of every type a full one, and tells messages from enums.
///
/// A name is looked up from the inside out, as protobuf does, but among messages and enums alone.
/// One that is declared nowhere stays as it is, without a kind: it is imported, and imports are not
/// in the text.
pub(super) fn resolve(set: &mut FileDescriptorSet) {
    let types = Types::of(set);
    for file in &mut set.file {
        let package = file.package().to_owned();
        for message in &mut file.message_type {
            types.resolve_message(&package, message);
        }
        for method in file
            .service
            .iter_mut()
            .flat_map(|service| &mut service.method)
        {
            for name in [&mut method.input_type, &mut method.output_type] {
                let written = name.take().unwrap_or_default();
                *name = Some(match types.find(&package, &written) {
                    Some((full, _)) => full,
                    None => written,
                });
            }
        }
    }
}

/// Kinds by full name, with a dot in front.
#[derive(Default)]
pub(in crate::contract) struct Types(BTreeMap<String, Type>);

impl Types {
    /// The messages and enums of a set.
    pub(in crate::contract) fn of(set: &FileDescriptorSet) -> Self {
        let mut types = Self::default();
        for file in &set.file {
            types.add(file.package(), &file.message_type, &file.enum_type);
        }
        types
    }

    /// What a full name with a dot in front stands for.
    pub(in crate::contract) fn kind(&self, name: &str) -> Option<Type> {
        self.0.get(name).copied()
    }

    fn add(&mut self, scope: &str, messages: &[DescriptorProto], enums: &[EnumDescriptorProto]) {
        for declared in enums {
            self.0
                .insert(format!(".{}", join(scope, declared.name())), Type::Enum);
        }
        for message in messages {
            let name = join(scope, message.name());
            self.add(&name, &message.nested_type, &message.enum_type);
            self.0.insert(format!(".{name}"), Type::Message);
        }
    }

    fn resolve_message(&self, scope: &str, message: &mut DescriptorProto) {
        let scope = join(scope, message.name());
        for field in &mut message.field {
            let found = field
                .type_name
                .as_ref()
                .and_then(|name| self.find(&scope, name));
            if let Some((name, kind)) = found {
                field.r#type = Some(kind.into());
                field.type_name = Some(name);
            }
        }
        for nested in &mut message.nested_type {
            self.resolve_message(&scope, nested);
        }
    }

    fn find(&self, scope: &str, name: &str) -> Option<(String, Type)> {
        if name.starts_with('.') {
            return self.0.get(name).map(|kind| (name.to_owned(), *kind));
        }
        let mut full = String::with_capacity(scope.len() + name.len() + 2);
        let mut scope = scope;
        loop {
            full.clear();
            for part in [".", scope, if scope.is_empty() { "" } else { "." }, name] {
                full.push_str(part);
            }
            if let Some(kind) = self.0.get(&full) {
                return Some((full, *kind));
            }
            if scope.is_empty() {
                return None;
            }
            scope = scope.rsplit_once('.').map_or("", |(outer, _)| outer);
        }
    }
}
