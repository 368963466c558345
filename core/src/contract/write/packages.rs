//! Brings a contract into the form in which it is written: a file for each package.

use super::{clashes, not_writable};
use crate::contract::{
    ContractError, only::import_what_is_used, schema::Schema, set::decode, text::Types,
};
use chronicle_connection_proto::IMPORTS_DESCRIPTOR_SET;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumOptions, FieldDescriptorProto, FieldOptions,
    FileDescriptorProto, FileDescriptorSet, MessageOptions, MethodDescriptorProto,
    OneofDescriptorProto, ServiceDescriptorProto, field_descriptor_proto::Label,
};
use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

/// Every file stands behind those that it imports.
pub(super) fn packages(schema: &Schema) -> Result<FileDescriptorSet, ContractError> {
    let mut set = decode(schema.descriptor_set())?;
    for_each_reference(&mut set, &mut |name| {
        if !name.starts_with('.') {
            name.insert(0, '.');
        }
    });
    supply_imports(&mut set)?;
    let mut not_in_set = BTreeMap::new();
    let mut merged = merge(set, &mut not_in_set)?;
    find_kinds(&mut merged);
    if schema.from_text {
        clashes::prefix_clashing_values(&mut merged)?;
    }
    import_what_is_used(&mut merged);
    let names: BTreeSet<String> = merged.file.iter().map(|file| file.name().into()).collect();
    for file in &mut merged.file {
        let imports = not_in_set.remove(file.name()).unwrap_or_default();
        file.dependency.extend(imports.difference(&names).cloned());
        file.dependency.sort_unstable();
    }
    order(merged.file)
}

/// Adds the files that declare what the set refers to without having it, as far as they are known.
fn supply_imports(set: &mut FileDescriptorSet) -> Result<(), ContractError> {
    let types = Types::of(set);
    let mut missing = BTreeSet::new();
    for_each_reference(set, &mut |name| {
        if types.kind(name).is_none() {
            missing.insert(name.clone());
        }
    });
    if missing.is_empty() {
        return Ok(());
    }
    for mut file in decode(IMPORTS_DESCRIPTOR_SET)?.file {
        let package = file.package().to_owned();
        let is_missing = |name: &str| missing.contains(&format!(".{package}.{name}"));
        let messages = file.message_type.iter().map(DescriptorProto::name);
        let enums = file.enum_type.iter().map(EnumDescriptorProto::name);
        if messages.chain(enums).any(is_missing) {
            // Servers that do not use it lack it, and would be found to have removed it.
            file.message_type
                .retain(|message| message.name() != "NetObjectProxy" || is_missing(message.name()));
            set.file.push(file);
        }
    }
    Ok(())
}

#[derive(Default)]
struct Package {
    package: Option<String>,
    syntax: Option<String>,
    messages: BTreeMap<String, DescriptorProto>,
    enums: BTreeMap<String, EnumDescriptorProto>,
    services: BTreeMap<String, ServiceDescriptorProto>,
}

/// A file for each package. What stands in the set twice has the same members, as reading has seen
/// to. The imports of every file, by its new name, come out beside them.
fn merge(
    set: FileDescriptorSet,
    imports: &mut BTreeMap<String, BTreeSet<String>>,
) -> Result<FileDescriptorSet, ContractError> {
    let mut packages: BTreeMap<String, Package> = BTreeMap::new();
    let old_names: BTreeSet<String> = set.file.iter().map(|file| file.name().into()).collect();
    for file in set.file {
        let name = name_of(&file);
        let not_there = file.dependency.into_iter();
        imports
            .entry(name.clone())
            .or_default()
            .extend(not_there.filter(|import| !old_names.contains(import)));
        let is_first = !packages.contains_key(&name);
        let into = packages.entry(name).or_default();
        let syntax = file.syntax.filter(|syntax| syntax != "proto2");
        if is_first {
            into.package = file.package.filter(|package| !package.is_empty());
            into.syntax = syntax;
        } else if into.syntax != syntax {
            let package = into.package.clone().unwrap_or_default();
            return not_writable(
                format!("the package {package:?}"),
                "is made of files of several syntaxes, and a file can have but one",
            );
        }
        let is_proto3 = into.syntax.is_some();
        for message in file.message_type {
            add(&mut into.messages, plain_message(message, is_proto3));
        }
        for declared in file.enum_type {
            let vacant = into.enums.entry(declared.name().to_owned());
            vacant.or_insert_with(|| plain_enum(declared, is_proto3));
        }
        for service in file.service {
            let vacant = into.services.entry(service.name().to_owned());
            vacant.or_insert_with(|| plain_service(service));
        }
    }
    let files = packages
        .into_iter()
        .map(|(name, package)| FileDescriptorProto {
            name: Some(name),
            package: package.package,
            message_type: package.messages.into_values().collect(),
            enum_type: package.enums.into_values().collect(),
            service: package.services.into_values().collect(),
            syntax: package.syntax,
            ..FileDescriptorProto::default()
        });
    // A package without declarations says nothing.
    let says_something = |file: &FileDescriptorProto| {
        !file.message_type.is_empty() || !file.enum_type.is_empty() || !file.service.is_empty()
    };
    Ok(FileDescriptorSet {
        file: files.filter(says_something).collect(),
    })
}

/// The files of Google keep their names, since compilers bring them; and that of `bcl` has the one
/// that protobuf-net gave it.
fn name_of(file: &FileDescriptorProto) -> String {
    match file.package() {
        "google.protobuf" if file.name().starts_with(BROUGHT_BY_COMPILERS) => {
            file.name().to_owned()
        }
        "bcl" => "protobuf-net/bcl.proto".to_owned(),
        // No package can be named like that.
        "" => "no-package.proto".to_owned(),
        package => format!("{package}.proto"),
    }
}

/// Adds a message, or what is nested in it to the one that is there: only their fields are the same.
fn add(messages: &mut BTreeMap<String, DescriptorProto>, message: DescriptorProto) {
    let there = match messages.entry(message.name().to_owned()) {
        Entry::Vacant(vacant) => {
            vacant.insert(message);
            return;
        }
        Entry::Occupied(there) => there.into_mut(),
    };
    let by_name = |nested: DescriptorProto| (nested.name().to_owned(), nested);
    let mut nested = std::mem::take(&mut there.nested_type)
        .into_iter()
        .map(by_name)
        .collect();
    for message in message.nested_type {
        add(&mut nested, message);
    }
    there.nested_type = nested.into_values().collect();
    let enums = std::mem::take(&mut there.enum_type).into_iter();
    let enums: BTreeMap<String, EnumDescriptorProto> = enums
        .chain(message.enum_type)
        .map(|declared| (declared.name().to_owned(), declared))
        .collect();
    there.enum_type = enums.into_values().collect();
}

fn plain_message(message: DescriptorProto, is_proto3: bool) -> DescriptorProto {
    let mut fields = message.field;
    fields.sort_by_key(FieldDescriptorProto::number);
    let mut field: Vec<_> = fields
        .into_iter()
        .map(|field| plain_field(field, is_proto3))
        .collect();
    let oneof_decl = oneofs(&mut field, &message.oneof_decl);
    let mut nested = BTreeMap::new();
    for message in message.nested_type {
        add(&mut nested, plain_message(message, is_proto3));
    }
    let enums: BTreeMap<String, EnumDescriptorProto> = message
        .enum_type
        .into_iter()
        .map(|declared| (declared.name().into(), plain_enum(declared, is_proto3)))
        .collect();
    let is_map_entry = message.options.is_some_and(|options| options.map_entry());
    DescriptorProto {
        name: message.name,
        field,
        nested_type: nested.into_values().collect(),
        enum_type: enums.into_values().collect(),
        oneof_decl,
        options: is_map_entry.then(|| MessageOptions {
            map_entry: Some(true),
            ..MessageOptions::default()
        }),
        ..DescriptorProto::default()
    }
}

fn plain_field(field: FieldDescriptorProto, is_proto3: bool) -> FieldDescriptorProto {
    let packed = field.options.as_ref().and_then(|options| options.packed);
    // Text may say it all the same.
    let is_required = is_proto3 && field.label() == Label::Required;
    FieldDescriptorProto {
        label: Some(match is_required {
            true => Label::Optional.into(),
            false => field.label().into(),
        }),
        options: packed.map(|packed| FieldOptions {
            packed: Some(packed),
            ..FieldOptions::default()
        }),
        name: field.name,
        number: field.number,
        r#type: field.r#type,
        type_name: field.type_name,
        oneof_index: field.oneof_index,
        proto3_optional: field.proto3_optional.filter(|optional| *optional),
        ..FieldDescriptorProto::default()
    }
}

/// Those that have fields, in the order of these; behind them the ones that stand for a proto3
/// `optional`, named as protoc names them.
fn oneofs(
    fields: &mut [FieldDescriptorProto],
    declared: &[OneofDescriptorProto],
) -> Vec<OneofDescriptorProto> {
    let mut names: Vec<String> = Vec::new();
    for field in fields.iter_mut().filter(|field| !field.proto3_optional()) {
        let Some(index) = field.oneof_index else {
            continue;
        };
        // Reading has seen to it that the index is one.
        let name = usize::try_from(index)
            .ok()
            .and_then(|index| declared.get(index))
            .map(|oneof| oneof.name().to_owned())
            .unwrap_or_default();
        let place = names.iter().position(|known| *known == name);
        let place = place.unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        field.oneof_index = Some(place as i32);
    }
    let mut taken: BTreeSet<String> = fields.iter().map(|field| field.name().into()).collect();
    taken.extend(names.iter().cloned());
    for field in fields.iter_mut().filter(|field| field.proto3_optional()) {
        let mut name = format!("_{}", field.name());
        while !taken.insert(name.clone()) {
            name.insert(0, 'X');
        }
        field.oneof_index = Some(names.len() as i32);
        names.push(name);
    }
    let oneof = |name| OneofDescriptorProto {
        name: Some(name),
        options: None,
    };
    names.into_iter().map(oneof).collect()
}

/// In proto3 the first value is the one of number 0.
fn plain_enum(declared: EnumDescriptorProto, is_proto3: bool) -> EnumDescriptorProto {
    let mut value = declared.value;
    for value in &mut value {
        value.options = None;
    }
    if is_proto3 {
        value.sort_by_key(|value| (value.number() != 0, value.number()));
    }
    let mut numbers = BTreeSet::new();
    let has_aliases = !value.iter().all(|value| numbers.insert(value.number()));
    EnumDescriptorProto {
        name: declared.name,
        value,
        options: has_aliases.then(|| EnumOptions {
            allow_alias: Some(true),
            ..EnumOptions::default()
        }),
        ..EnumDescriptorProto::default()
    }
}

fn plain_service(service: ServiceDescriptorProto) -> ServiceDescriptorProto {
    let mut method: Vec<_> = service.method;
    method.sort_by(|a, b| a.name().cmp(b.name()));
    for method in &mut method {
        *method = MethodDescriptorProto {
            name: method.name.take(),
            input_type: method.input_type.take(),
            output_type: method.output_type.take(),
            options: None,
            client_streaming: method.client_streaming.filter(|streaming| *streaming),
            server_streaming: method.server_streaming.filter(|streaming| *streaming),
        };
    }
    ServiceDescriptorProto {
        name: service.name,
        method,
        options: None,
    }
}

/// Text does not say whether a type is a message or an enum.
fn find_kinds(set: &mut FileDescriptorSet) {
    fn visit(message: &mut DescriptorProto, types: &Types) {
        for field in &mut message.field {
            if let (None, Some(name)) = (field.r#type, &field.type_name) {
                field.r#type = types.kind(name).map(i32::from);
            }
        }
        for nested in &mut message.nested_type {
            visit(nested, types);
        }
    }
    let types = Types::of(set);
    let messages = set.file.iter_mut().flat_map(|file| &mut file.message_type);
    messages.for_each(|message| visit(message, &types));
}

fn for_each_reference(set: &mut FileDescriptorSet, call: &mut impl FnMut(&mut String)) {
    fn visit(message: &mut DescriptorProto, call: &mut impl FnMut(&mut String)) {
        let names = message.field.iter_mut().map(|field| &mut field.type_name);
        names
            .flatten()
            .filter(|name| !name.is_empty())
            .for_each(&mut *call);
        for nested in &mut message.nested_type {
            visit(nested, call);
        }
    }
    for file in &mut set.file {
        for message in &mut file.message_type {
            visit(message, call);
        }
        for method in file
            .service
            .iter_mut()
            .flat_map(|service| &mut service.method)
        {
            let names = [&mut method.input_type, &mut method.output_type];
            names.into_iter().flatten().for_each(&mut *call);
        }
    }
}

/// Every file behind those that it imports, and otherwise by name.
fn order(files: Vec<FileDescriptorProto>) -> Result<FileDescriptorSet, ContractError> {
    let mut left: BTreeMap<String, FileDescriptorProto> = files
        .into_iter()
        .map(|file| (file.name().to_owned(), file))
        .collect();
    let mut ordered = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let is_ready = |file: &&FileDescriptorProto| {
            !file
                .dependency
                .iter()
                .any(|import| left.contains_key(import))
        };
        let Some(name) = left
            .values()
            .find(is_ready)
            .map(|file| file.name().to_owned())
        else {
            let names: Vec<String> = left.into_keys().collect();
            return not_writable(
                names.join(", "),
                "import each other in a circle, so that no compiler takes a file for each package",
            );
        };
        ordered.extend(left.remove(&name));
    }
    Ok(FileDescriptorSet { file: ordered })
}

pub(super) const BROUGHT_BY_COMPILERS: &str = "google/protobuf/";
