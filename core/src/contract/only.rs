//! Cuts a contract down to the services that an application uses.

use super::{
    ContractError,
    schema::Schema,
    set::{decode, join},
};
use prost::Message as _;
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};
use std::collections::{BTreeMap, BTreeSet};

/// Keeps these services, by full name, with all that their methods can carry.
pub(super) fn only(schema: &Schema, services: &[&str]) -> Result<Schema, ContractError> {
    let mut set = decode(schema.descriptor_set())?;
    let wanted: BTreeSet<&str> = services.iter().copied().collect();
    for name in &wanted {
        if schema.find(&schema.services, name.as_bytes()).is_none() {
            return Err(ContractError::NoSuchService((*name).to_owned()));
        }
    }
    for file in &mut set.file {
        let package = file.package().to_owned();
        file.service
            .retain(|service| wanted.contains(join(&package, service.name()).as_str()));
        // They may extend what is not there any more, and are never compared.
        file.extension.clear();
        file.message_type.iter_mut().for_each(clear_extensions);
    }
    let reached = reach(&set);
    for file in &mut set.file {
        let package = file.package().to_owned();
        let is_reached = |name: &str| reached.contains(&join(&package, name));
        file.message_type
            .retain(|message| is_reached(message.name()));
        file.enum_type
            .retain(|declared| is_reached(declared.name()));
    }
    set.file.retain(|file| {
        !file.service.is_empty() || !file.message_type.is_empty() || !file.enum_type.is_empty()
    });
    if set.file.is_empty() {
        return Ok(Schema::default());
    }
    import_what_is_used(&mut set);
    Schema::from_descriptor_set(set.encode_to_vec())
}

fn clear_extensions(message: &mut DescriptorProto) {
    message.extension.clear();
    message.nested_type.iter_mut().for_each(clear_extensions);
}

/// The top-level types that the services of a set reach.
fn reach(set: &FileDescriptorSet) -> BTreeSet<String> {
    let top_level = top_level(set);
    let mut reached = BTreeSet::new();
    let mut todo: Vec<&str> = set.file.iter().flat_map(used_by_services).collect();
    while let Some(name) = todo.pop() {
        let Some((name, declared)) = find(&top_level, name) else {
            continue;
        };
        if reached.insert(name.to_owned())
            && let Declared {
                message: Some(message),
                ..
            } = declared
        {
            used_by_message(message, &mut todo);
        }
    }
    reached
}

/// Every file imports the files whose types it uses, and no other.
pub(super) fn import_what_is_used(set: &mut FileDescriptorSet) {
    let top_level = top_level(set);
    let imports: Vec<BTreeSet<String>> = set
        .file
        .iter()
        .map(|file| {
            let mut used: Vec<&str> = used_by_services(file).collect();
            for message in &file.message_type {
                used_by_message(message, &mut used);
            }
            let files = used.into_iter().filter_map(|name| find(&top_level, name));
            files
                .map(|(_, declared)| declared.file.to_owned())
                .filter(|name| name != file.name())
                .collect()
        })
        .collect();
    for (file, imports) in set.file.iter_mut().zip(imports) {
        file.dependency = imports.into_iter().collect();
        file.public_dependency.clear();
        file.weak_dependency.clear();
    }
}

struct Declared<'a> {
    file: &'a str,
    message: Option<&'a DescriptorProto>,
}

fn top_level(set: &FileDescriptorSet) -> BTreeMap<String, Declared<'_>> {
    let mut top_level = BTreeMap::new();
    for file in &set.file {
        let messages = file
            .message_type
            .iter()
            .map(|message| (message.name(), Some(message)));
        let enums = file
            .enum_type
            .iter()
            .map(|declared| (declared.name(), None));
        for (name, message) in messages.chain(enums) {
            let file_name = file.name();
            top_level.insert(
                join(file.package(), name),
                Declared {
                    file: file_name,
                    message,
                },
            );
        }
    }
    top_level
}

/// The top-level type that is, or holds, the one of this full name.
fn find<'a, 'set>(
    top_level: &'a BTreeMap<String, Declared<'set>>,
    name: &str,
) -> Option<(&'a str, &'a Declared<'set>)> {
    let mut name = name.trim_start_matches('.');
    loop {
        if let Some((name, declared)) = top_level.get_key_value(name) {
            return Some((name, declared));
        }
        name = name.rsplit_once('.')?.0;
    }
}

fn used_by_services(file: &FileDescriptorProto) -> impl Iterator<Item = &str> {
    let methods = file.service.iter().flat_map(|service| &service.method);
    methods.flat_map(|method| [method.input_type(), method.output_type()])
}

fn used_by_message<'a>(message: &'a DescriptorProto, used: &mut Vec<&'a str>) {
    used.extend(
        message
            .field
            .iter()
            .map(|field| field.type_name())
            .filter(|name| !name.is_empty()),
    );
    for nested in &message.nested_type {
        used_by_message(nested, used);
    }
}
