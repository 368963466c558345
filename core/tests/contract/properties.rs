//! What holds for contracts of any shape.

use chronicle_connection::{Incompatibility, IncompatibilityKind as Kind, Schema, diff};
use proptest::{collection::vec, prelude::*};
use prost::Message as _;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto, OneofDescriptorProto,
    ServiceDescriptorProto,
    field_descriptor_proto::{Label, Type},
};

proptest! {
    #[test]
    fn a_contract_equals_itself(shape in shape()) {
        prop_assert_eq!(diff(&shape.all(), &shape.all()), []);
    }

    #[test]
    fn removing_one_thing_yields_exactly_the_finding_for_it(shape in shape(), index: prop::sample::Index) {
        let things = shape.things();
        let (kind, path) = index.get(&things);
        let findings = diff(&shape.all(), &shape.without(path));
        let told: Vec<_> = findings.iter().map(|one| (one.kind, one.path.clone())).collect();
        prop_assert_eq!(told, [(*kind, path.clone())]);
        prop_assert_eq!(&findings[0].after, &None);
    }

    #[test]
    fn adding_one_thing_is_never_found(shape in shape(), index: prop::sample::Index) {
        let things = shape.things();
        let (_, path) = index.get(&things);
        prop_assert_eq!(diff(&shape.without(path), &shape.all()), []);
    }

    #[test]
    fn the_order_and_the_files_of_declarations_do_not_matter(one in shape(), other in shape(), seed: u64) {
        let findings = diff(&one.all(), &other.all());
        prop_assert!(is_sorted(&findings));
        let shuffled = diff(&one.shuffled(seed), &other.shuffled(seed.rotate_left(7)));
        prop_assert_eq!(shuffled, findings);
    }

    #[test]
    fn sets_that_are_cut_short_are_never_read_as_more_than_they_are(shape in shape(), cut: prop::sample::Index) {
        let bytes = shape.set(None).encode_to_vec();
        let whole = Schema::from_descriptor_set(bytes.clone()).unwrap();
        if let Ok(part) = Schema::from_descriptor_set(bytes[..cut.index(bytes.len())].to_vec()) {
            prop_assert_eq!(diff(&part, &whole), []);
        }
    }
}

fn is_sorted(findings: &[Incompatibility]) -> bool {
    findings.is_sorted_by_key(|finding| (&finding.path, finding.kind))
}

/// How many of everything there is in each package.
#[derive(Debug, Clone)]
struct Shape(Vec<Package>);

#[derive(Debug, Clone)]
struct Package {
    /// The types of the fields of each message, and whether it holds a nested one.
    messages: Vec<(Vec<u8>, bool)>,
    enums: Vec<u8>,
    services: Vec<u8>,
}

fn shape() -> impl Strategy<Value = Shape> {
    let package = (
        vec((vec(0_u8..40, 0..6), any::<bool>()), 1..5),
        vec(1_u8..5, 0..3),
        vec(0_u8..4, 0..3),
    );
    let package = package.prop_map(|(messages, enums, services)| Package {
        messages,
        enums,
        services,
    });
    vec(package, 1..4).prop_map(Shape)
}

impl Shape {
    fn all(&self) -> Schema {
        read(&self.set(None))
    }

    fn without(&self, path: &str) -> Schema {
        read(&self.set(Some(path)))
    }

    /// Everything that can be removed on its own.
    fn things(&self) -> Vec<(Kind, String)> {
        let mut things = Vec::new();
        for file in self.set(None).file {
            let package = file.package().to_owned();
            for service in &file.service {
                let service_path = format!("{package}.{}", service.name());
                for method in &service.method {
                    let path = format!("{service_path}/{}", method.name());
                    things.push((Kind::MethodRemoved, path));
                }
                things.push((Kind::ServiceRemoved, service_path));
            }
            for declared in &file.enum_type {
                let enum_path = format!("{package}.{}", declared.name());
                for value in &declared.value {
                    let path = format!("{enum_path}.{}", value.name());
                    things.push((Kind::EnumValueRemoved, path));
                }
                things.push((Kind::EnumRemoved, enum_path));
            }
            for message in &file.message_type {
                add_message(&package, message, &mut things);
            }
        }
        things
    }

    fn shuffled(&self, mut seed: u64) -> Schema {
        let mut files = Vec::new();
        for mut file in self.set(None).file {
            for message in &mut file.message_type {
                shuffle(&mut message.field, &mut seed);
            }
            for declared in &mut file.enum_type {
                shuffle(&mut declared.value, &mut seed);
            }
            for service in &mut file.service {
                shuffle(&mut service.method, &mut seed);
            }
            // A file for every declaration.
            let bare = || FileDescriptorProto {
                package: file.package.clone(),
                ..FileDescriptorProto::default()
            };
            files.extend(file.message_type.iter().map(|message| FileDescriptorProto {
                message_type: vec![message.clone()],
                ..bare()
            }));
            files.extend(file.enum_type.iter().map(|declared| FileDescriptorProto {
                enum_type: vec![declared.clone()],
                ..bare()
            }));
            files.extend(file.service.iter().map(|service| FileDescriptorProto {
                service: vec![service.clone()],
                ..bare()
            }));
        }
        shuffle(&mut files, &mut seed);
        read(&FileDescriptorSet { file: files })
    }

    fn set(&self, without: Option<&str>) -> FileDescriptorSet {
        let packages = self.0.iter().enumerate();
        let file = packages.map(|(index, package)| {
            let name = format!("p{index}");
            let keeps = |path: String| Some(path.as_str()) != without;
            let mut file = FileDescriptorProto {
                name: Some(format!("{name}.proto")),
                message_type: (0..)
                    .zip(&package.messages)
                    .map(|(index, (fields, has_nested))| {
                        message(&format!("M{index}"), fields, *has_nested)
                    })
                    .collect(),
                enum_type: (0..).zip(&package.enums).map(enumeration).collect(),
                service: (0..).zip(&package.services).map(service).collect(),
                package: Some(name.clone()),
                ..FileDescriptorProto::default()
            };
            file.service
                .retain(|service| keeps(format!("{name}.{}", service.name())));
            for service in &mut file.service {
                let path = format!("{name}.{}", service.name());
                let kept =
                    |method: &MethodDescriptorProto| keeps(format!("{path}/{}", method.name()));
                service.method.retain(kept);
            }
            file.enum_type
                .retain(|declared| keeps(format!("{name}.{}", declared.name())));
            for declared in &mut file.enum_type {
                let path = format!("{name}.{}", declared.name());
                declared
                    .value
                    .retain(|value| keeps(format!("{path}.{}", value.name())));
            }
            remove(&name, &mut file.message_type, &keeps);
            file
        });
        FileDescriptorSet {
            file: file.collect(),
        }
    }
}

fn remove(scope: &str, messages: &mut Vec<DescriptorProto>, keeps: &impl Fn(String) -> bool) {
    messages.retain(|message| keeps(format!("{scope}.{}", message.name())));
    for message in messages {
        let path = format!("{scope}.{}", message.name());
        message
            .field
            .retain(|field| keeps(format!("{path}.{}", field.name())));
        remove(&path, &mut message.nested_type, keeps);
    }
}

/// A message that holds another takes that one with it, so only the inner one stands alone.
fn add_message(scope: &str, message: &DescriptorProto, things: &mut Vec<(Kind, String)>) {
    let path = format!("{scope}.{}", message.name());
    for field in &message.field {
        things.push((Kind::FieldRemoved, format!("{path}.{}", field.name())));
    }
    for nested in &message.nested_type {
        add_message(&path, nested, things);
    }
    if message.nested_type.is_empty() {
        things.push((Kind::MessageRemoved, path));
    }
}

fn message(name: &str, fields: &[u8], has_nested: bool) -> DescriptorProto {
    let field = |(index, kind): (i32, &u8)| FieldDescriptorProto {
        name: Some(format!("f{index}")),
        number: Some(index * 3 + 1),
        label: Some(
            if kind % 3 == 0 {
                Label::Repeated
            } else {
                Label::Optional
            }
            .into(),
        ),
        r#type: Some(match kind % 4 {
            0 => Type::String,
            1 => Type::Int32,
            2 => Type::Message,
            _ => Type::Enum,
        } as i32),
        type_name: match kind % 4 {
            2 => Some(".p0.M0".to_owned()),
            3 => Some(".p0.E0".to_owned()),
            _ => None,
        },
        oneof_index: (kind % 7 == 1).then_some(0),
        ..FieldDescriptorProto::default()
    };
    DescriptorProto {
        name: Some(name.to_owned()),
        field: (0..).zip(fields).map(field).collect(),
        nested_type: match has_nested {
            true => vec![message("Inner", fields, false)],
            false => vec![],
        },
        oneof_decl: vec![OneofDescriptorProto {
            name: Some("choice".to_owned()),
            options: None,
        }],
        ..DescriptorProto::default()
    }
}

fn enumeration((index, values): (usize, &u8)) -> EnumDescriptorProto {
    let value = |number: i32| EnumValueDescriptorProto {
        name: Some(format!("V{number}")),
        number: Some(number - 1),
        options: None,
    };
    EnumDescriptorProto {
        name: Some(format!("E{index}")),
        value: (0..i32::from(*values)).map(value).collect(),
        ..EnumDescriptorProto::default()
    }
}

fn service((index, methods): (usize, &u8)) -> ServiceDescriptorProto {
    let method = |number: u8| MethodDescriptorProto {
        name: Some(format!("Do{number}")),
        input_type: Some(".p0.M0".to_owned()),
        output_type: Some(".p0.M0".to_owned()),
        server_streaming: Some(number == 1),
        ..MethodDescriptorProto::default()
    };
    ServiceDescriptorProto {
        name: Some(format!("S{index}")),
        method: (0..*methods).map(method).collect(),
        options: None,
    }
}

fn read(set: &FileDescriptorSet) -> Schema {
    Schema::from_descriptor_set(set.encode_to_vec()).unwrap()
}

/// Fisher and Yates, with the multiplier of Knuth's MMIX.
fn shuffle<T>(items: &mut [T], seed: &mut u64) {
    for index in (1..items.len()).rev() {
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        items.swap(index, (*seed >> 33) as usize % (index + 1));
    }
}
