//! What holds for written contracts of any shape that compilers take.

use crate::{compilers::compiled, older_server};
use chronicle_connection::{ProtoFile, Schema, diff};
use proptest::{collection::vec, option, prelude::*, sample::Index};
use prost::Message as _;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, FileDescriptorSet, MessageOptions, MethodDescriptorProto,
    OneofDescriptorProto, ServiceDescriptorProto,
    field_descriptor_proto::{Label, Type},
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_set_that_is_written_is_the_same_when_it_is_read_again(shape in shape()) {
        let schema = read(&shape.set());
        let written = schema.to_descriptor_set().unwrap();
        let again = Schema::from_descriptor_set(written.clone()).unwrap();
        prop_assert_eq!(&again, &schema);
        prop_assert_eq!(diff(&again, &schema), []);
        prop_assert_eq!(diff(&schema, &again), []);
        prop_assert_eq!(again.to_descriptor_set().unwrap(), written);
    }

    /// Names of enum values that clash are the same with and without the enum's name, as far as
    /// text is concerned.
    #[test]
    fn files_that_are_written_are_the_same_when_they_are_compiled(shape in shape()) {
        let schema = read(&shape.set());
        let files = schema.to_proto_files().unwrap();
        let by_protox = compiled(&files);
        let text = as_text(&files);
        for (one, other) in [(&schema, &text), (&by_protox, &text)] {
            prop_assert_eq!(diff(one, other), []);
            prop_assert_eq!(diff(other, one), []);
        }
        if !shape.has_clashes {
            prop_assert_eq!(&by_protox, &schema);
        }
        prop_assert_eq!(by_protox.to_proto_files().unwrap(), files);
    }

    #[test]
    fn the_text_of_an_older_server_is_written_as_what_it_stands_for(shape in shape()) {
        let set = shape.set();
        let told = Schema::from_source_text(&older_server::print(&set, "\n")).unwrap();
        let written = Schema::from_descriptor_set(told.to_descriptor_set().unwrap()).unwrap();
        for (one, other) in [(&told, &written), (&read(&set), &told)] {
            prop_assert_eq!(diff(one, other), []);
            prop_assert_eq!(diff(other, one), []);
        }
        let files = told.to_proto_files().unwrap();
        prop_assert_eq!(&compiled(&files), &written);
        prop_assert_eq!(written.to_proto_files().unwrap(), files);
    }
}

/// Packages of which each uses types of its own and of the ones before it.
#[derive(Debug, Clone)]
struct Shape {
    packages: Vec<Package>,
    has_clashes: bool,
}

#[derive(Debug, Clone)]
struct Package {
    messages: Vec<(Vec<FieldShape>, bool)>,
    enums: Vec<Vec<i32>>,
    methods: Vec<(Index, Index, bool, bool)>,
}

#[derive(Debug, Clone)]
struct FieldShape {
    scalar: Type,
    named: Option<Index>,
    form: Form,
    gap: i32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Singular,
    Optional,
    Repeated,
    Map,
    OneOf(i32),
}

fn shape() -> impl Strategy<Value = Shape> {
    let form = prop_oneof![
        Just(Form::Singular),
        Just(Form::Optional),
        Just(Form::Repeated),
        Just(Form::Map),
        (0..2).prop_map(Form::OneOf),
    ];
    let scalar = prop::sample::select(SCALARS.to_vec());
    let field = (scalar, option::of(any::<Index>()), form, 1..300);
    let field = field.prop_map(|(scalar, named, form, gap)| FieldShape {
        scalar,
        named,
        form,
        gap,
    });
    let package = (
        vec((vec(field, 0..7), any::<bool>()), 1..4),
        vec(vec(-3..4, 0..5), 0..4),
        vec(any::<(Index, Index, bool, bool)>(), 0..4),
    );
    let package = package.prop_map(|(messages, enums, methods)| Package {
        messages,
        enums,
        methods,
    });
    (vec(package, 1..4), any::<bool>()).prop_map(|(packages, has_clashes)| Shape {
        packages,
        has_clashes,
    })
}

impl Shape {
    fn set(&self) -> FileDescriptorSet {
        let mut messages: Vec<String> = vec![".google.protobuf.Empty".to_owned()];
        let mut types = vec![(Type::Message, ".bcl.Guid".to_owned())];
        let mut file = self.imports();
        for (index, package) in self.packages.iter().enumerate() {
            let name = ["A.Orders", "A", "A.Orders.Lines"][index];
            let full = |simple: &str, index: usize| format!(".{name}.{simple}{index}");
            let own = 0..package.messages.len();
            messages.extend(own.clone().map(|index| full("M", index)));
            types.extend(own.map(|index| (Type::Message, full("M", index))));
            types.extend(
                (0..package.enums.len()).map(|index| (Type::Enum, full("JobState", index))),
            );
            let pick = |index: &Index| Some(index.get(&messages).clone());
            // So that the import is one that is used.
            let nothing = MethodDescriptorProto {
                name: Some("Nothing".to_owned()),
                input_type: Some(messages[0].clone()),
                output_type: Some(messages[0].clone()),
                ..MethodDescriptorProto::default()
            };
            let methods = package.methods.iter().enumerate();
            let method = |(number, (input, output, client, server)): (
                usize,
                &(Index, Index, bool, bool),
            )| {
                MethodDescriptorProto {
                    // Some are named like a message.
                    name: Some(format!("M{number}")),
                    input_type: pick(input),
                    output_type: pick(output),
                    client_streaming: Some(*client),
                    server_streaming: Some(*server),
                    ..MethodDescriptorProto::default()
                }
            };
            file.push(FileDescriptorProto {
                name: Some(format!("{index}.proto")),
                package: Some(name.to_owned()),
                message_type: (0..)
                    .zip(&package.messages)
                    .map(|(number, (fields, has_nested))| {
                        self.message(name, &format!("M{number}"), fields, *has_nested, &types)
                    })
                    .collect(),
                enum_type: (0..)
                    .zip(&package.enums)
                    .map(|(number, values)| self.enumeration(&format!("JobState{number}"), values))
                    .collect(),
                service: vec![ServiceDescriptorProto {
                    name: Some("S".to_owned()),
                    method: methods.map(method).chain([nothing]).collect(),
                    options: None,
                }],
                syntax: Some("proto3".to_owned()),
                ..FileDescriptorProto::default()
            });
        }
        FileDescriptorSet { file }
    }

    /// What packages refer to, as it is supplied.
    fn imports(&self) -> Vec<FileDescriptorProto> {
        let text = "package p; message M { .bcl.Guid id = 1; .google.protobuf.Empty none = 2; }";
        let set = Schema::from_source_text(text).unwrap();
        let set = FileDescriptorSet::decode(set.to_descriptor_set().unwrap()).unwrap();
        let files = set.file.into_iter();
        files.filter(|file| file.package() != "p").collect()
    }

    fn message(
        &self,
        scope: &str,
        name: &str,
        fields: &[FieldShape],
        has_nested: bool,
        types: &[(Type, String)],
    ) -> DescriptorProto {
        let path = format!("{scope}.{name}");
        let mut message = DescriptorProto {
            name: Some(name.to_owned()),
            ..DescriptorProto::default()
        };
        for oneof in ["first", "second"] {
            message.oneof_decl.push(OneofDescriptorProto {
                name: Some(oneof.to_owned()),
                options: None,
            });
        }
        let mut number = 0;
        for (index, shape) in fields.iter().enumerate() {
            number += shape.gap;
            let name = format!("someField_{index}");
            let (mut kind, mut type_name) = match &shape.named {
                Some(named) => named.get(types).clone(),
                None => (shape.scalar, String::new()),
            };
            if shape.form == Form::Map {
                let value = field("value", 2, kind, type_name);
                let entry = format!("SomeField{index}Entry");
                type_name = format!(".{path}.{entry}");
                kind = Type::Message;
                message.nested_type.push(DescriptorProto {
                    name: Some(entry),
                    field: vec![field("key", 1, Type::String, String::new()), value],
                    options: Some(MessageOptions {
                        map_entry: Some(true),
                        ..MessageOptions::default()
                    }),
                    ..DescriptorProto::default()
                });
            }
            let mut field = field(&name, number, kind, type_name);
            match shape.form {
                Form::Singular => {}
                Form::Optional => {
                    field.proto3_optional = Some(true);
                    field.oneof_index = Some(message.oneof_decl.len() as i32);
                    message.oneof_decl.push(OneofDescriptorProto {
                        name: Some(format!("_{name}")),
                        options: None,
                    });
                }
                Form::Repeated | Form::Map => field.label = Some(Label::Repeated.into()),
                Form::OneOf(index) => field.oneof_index = Some(index),
            }
            message.field.push(field);
        }
        if has_nested {
            let nested = self.message(&path, "Inner", fields, false, types);
            message.nested_type.push(nested);
            message.enum_type.push(self.enumeration("Mode", &[1, 2]));
        }
        message
    }

    fn enumeration(&self, name: &str, numbers: &[i32]) -> EnumDescriptorProto {
        // One of number 0 there must be; numbers that come twice are aliases.
        let numbers = numbers.iter().chain([&0]);
        let value = |(index, number): (usize, &i32)| EnumValueDescriptorProto {
            name: Some(match (self.has_clashes, index) {
                (true, 0) => "M0".to_owned(),
                (true, _) => format!("Running{index}"),
                (false, _) => format!("{name}_{index}"),
            }),
            number: Some(*number),
            options: None,
        };
        EnumDescriptorProto {
            name: Some(name.to_owned()),
            value: numbers.enumerate().map(value).collect(),
            ..EnumDescriptorProto::default()
        }
    }
}

fn field(name: &str, number: i32, kind: Type, type_name: String) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(kind.into()),
        type_name: Some(type_name).filter(|name| !name.is_empty()),
        ..FieldDescriptorProto::default()
    }
}

fn read(set: &FileDescriptorSet) -> Schema {
    Schema::from_descriptor_set(set.encode_to_vec()).unwrap()
}

fn as_text(files: &[ProtoFile]) -> Schema {
    let texts: Vec<&str> = files.iter().map(|file| &*file.content).collect();
    Schema::from_source_text(&texts.join("\n")).unwrap()
}

const SCALARS: [Type; 15] = [
    Type::Double,
    Type::Float,
    Type::Int64,
    Type::Uint64,
    Type::Int32,
    Type::Fixed64,
    Type::Fixed32,
    Type::Bool,
    Type::String,
    Type::Bytes,
    Type::Uint32,
    Type::Sfixed32,
    Type::Sfixed64,
    Type::Sint32,
    Type::Sint64,
];
