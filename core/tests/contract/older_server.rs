//! Prints a descriptor set the way older servers print their contract: a chunk for each package,
//! imports left out, names unqualified, enum values without the enum's name.

use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    FileDescriptorSet, ServiceDescriptorProto,
    field_descriptor_proto::{Label, Type},
};
use std::collections::{BTreeMap, BTreeSet};

/// The text of a contract, with the newline of the server's operating system.
pub(crate) fn print(set: &FileDescriptorSet, newline: &str) -> String {
    let mut packages: BTreeMap<&str, Vec<&FileDescriptorProto>> = BTreeMap::new();
    for file in &set.file {
        if !["bcl", "google.protobuf"].contains(&file.package()) {
            packages.entry(file.package()).or_default().push(file);
        }
    }
    let chunks = packages.iter().map(|(package, files)| {
        let mut chunk = Chunk {
            package,
            lines: Vec::new(),
        };
        chunk.print(files);
        chunk.lines.join(newline)
    });
    chunks.collect::<Vec<_>>().join(newline)
}

struct Chunk<'a> {
    package: &'a str,
    lines: Vec<String>,
}

impl Chunk<'_> {
    fn print(&mut self, files: &[&FileDescriptorProto]) {
        self.line(0, "syntax = \"proto3\";");
        if !self.package.is_empty() {
            self.line(0, &format!("package {};", self.package));
        }
        let imports: BTreeSet<&String> = files.iter().flat_map(|file| &file.dependency).collect();
        for import in imports {
            self.line(0, &format!("import \"{import}\";"));
        }
        self.line(0, "");
        let messages = files.iter().flat_map(|file| &file.message_type);
        let enums = files.iter().flat_map(|file| &file.enum_type);
        self.types(0, messages, enums);
        for service in files.iter().flat_map(|file| &file.service) {
            self.service(service);
        }
    }

    /// Messages and enums, sorted by name.
    fn types<'a>(
        &mut self,
        indent: usize,
        messages: impl Iterator<Item = &'a DescriptorProto>,
        enums: impl Iterator<Item = &'a EnumDescriptorProto>,
    ) {
        let messages: BTreeMap<_, _> = messages.map(|message| (message.name(), message)).collect();
        let mut enums: BTreeMap<_, _> = enums.map(|one| (one.name(), one)).collect();
        for (name, message) in messages {
            while let Some(first) = enums.first_entry()
                && *first.key() < name
            {
                let declared = first.remove();
                self.enumeration(indent, declared);
            }
            self.message(indent, message);
        }
        for declared in enums.into_values() {
            self.enumeration(indent, declared);
        }
    }

    fn message(&mut self, indent: usize, message: &DescriptorProto) {
        self.line(indent, &format!("message {} {{", message.name()));
        for (index, oneof) in message.oneof_decl.iter().enumerate() {
            let is_in = |field: &&FieldDescriptorProto| {
                field.oneof_index == Some(index as i32) && !field.proto3_optional()
            };
            if !message.field.iter().any(|field| is_in(&field)) {
                continue;
            }
            self.line(indent + 1, &format!("oneof {} {{", oneof.name()));
            for field in message.field.iter().filter(is_in) {
                self.field(indent + 2, message, field);
            }
            self.line(indent + 1, "}");
        }
        for field in &message.field {
            if field.oneof_index.is_none() || field.proto3_optional() {
                self.field(indent + 1, message, field);
            }
        }
        let is_entry =
            |message: &&DescriptorProto| message.options.as_ref().is_some_and(|o| o.map_entry());
        let nested = message
            .nested_type
            .iter()
            .filter(|nested| !is_entry(nested));
        self.types(indent + 1, nested, message.enum_type.iter());
        self.line(indent, "}");
    }

    fn field(&mut self, indent: usize, message: &DescriptorProto, field: &FieldDescriptorProto) {
        let name = field.name();
        if field.r#type() == Type::Enum && field.label() != Label::Repeated {
            self.line(indent, "// default value could not be applied: 1 }; \"");
        }
        let entry = message.nested_type.iter().find(|nested| {
            nested
                .options
                .as_ref()
                .is_some_and(|options| options.map_entry())
                && field
                    .type_name()
                    .ends_with(&format!(".{}.{}", message.name(), nested.name()))
        });
        let declaration = match entry {
            Some(entry) => {
                let (key, value) = (&entry.field[0], &entry.field[1]);
                format!("map<{},{}> {name}", self.type_of(key), self.type_of(value))
            }
            None => match field.label() {
                Label::Repeated => format!("repeated {} {name}", self.type_of(field)),
                Label::Optional if field.proto3_optional() => {
                    format!("optional {} {name}", self.type_of(field))
                }
                Label::Optional => format!("{} {name}", self.type_of(field)),
                Label::Required => format!("required {} {name}", self.type_of(field)),
            },
        };
        let is_number =
            field.type_name.is_none() && ![Type::String, Type::Bytes].contains(&field.r#type());
        let options = match (field.label(), field.r#type()) {
            (Label::Repeated, _) if is_number => " [packed = false]",
            (Label::Optional, Type::String) => " [default = \"a ; \\\" }\"]",
            _ => "",
        };
        self.line(
            indent,
            &format!("{declaration} = {}{options};", field.number()),
        );
    }

    fn enumeration(&mut self, indent: usize, declared: &EnumDescriptorProto) {
        self.line(indent, &format!("enum {} {{", declared.name()));
        let mut numbers = BTreeSet::new();
        if !declared
            .value
            .iter()
            .all(|value| numbers.insert(value.number()))
        {
            self.line(indent + 1, "option allow_alias = true;");
        }
        let prefix = upper_snake_case(declared.name());
        for value in &declared.value {
            let name = value.name().strip_prefix(&prefix).unwrap_or(value.name());
            self.line(indent + 1, &format!("{name} = {};", value.number()));
        }
        self.line(indent, "}");
    }

    fn service(&mut self, service: &ServiceDescriptorProto) {
        self.line(0, &format!("service {} {{", service.name()));
        for method in &service.method {
            let side = |streaming, name| {
                let stream = if streaming { "stream " } else { "" };
                format!("({stream}{})", self.reference(name))
            };
            let line = format!(
                "rpc {} {} returns {};",
                method.name(),
                side(method.client_streaming(), method.input_type()),
                side(method.server_streaming(), method.output_type()),
            );
            self.line(1, &line);
        }
        self.line(0, "}");
    }

    fn type_of(&self, field: &FieldDescriptorProto) -> String {
        match field.r#type() {
            Type::Message | Type::Enum | Type::Group => self.reference(field.type_name()),
            scalar => scalar.as_str_name().to_lowercase().split_off("type_".len()),
        }
    }

    /// Unqualified within the package.
    fn reference(&self, name: &str) -> String {
        let inside = name
            .strip_prefix(&format!(".{}.", self.package))
            .filter(|inside| !inside.contains('.'));
        inside.unwrap_or(name).to_owned()
    }

    fn line(&mut self, indent: usize, text: &str) {
        self.lines.push(format!("{}{text}", "   ".repeat(indent)));
    }
}

/// `JOB_STATUS_` for `JobStatus`.
fn upper_snake_case(name: &str) -> String {
    let mut snake = String::new();
    for (index, c) in name.char_indices() {
        if index > 0 && c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_uppercase());
    }
    snake + "_"
}
