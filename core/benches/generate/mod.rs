//! Generates contracts of any size, in the proportions of a real one: two services, a dozen
//! messages with three to four fields each and an enum to a package.

use prost::Message as _;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto, ServiceDescriptorProto,
    field_descriptor_proto::{Label, Type},
};

/// A serialized `FileDescriptorSet` of at least so many bytes.
pub(crate) fn old(bytes: usize) -> Vec<u8> {
    set(bytes, |index| file(index, false))
}

/// The same contract, with its packages in another order, with additions everywhere, and with
/// breaking changes in one package of twenty.
pub(crate) fn new(bytes: usize) -> Vec<u8> {
    // The order is that of the bits reversed, which has no runs to profit from.
    let files = number_of_files(bytes);
    let bits = files.next_power_of_two().trailing_zeros();
    let mut buffer = Vec::with_capacity(bytes + bytes / 8);
    for index in 0..files.next_power_of_two() {
        let index = index.reverse_bits() >> (usize::BITS - bits.max(1));
        if index < files {
            append(&mut buffer, file(index, true));
        }
    }
    buffer
}

fn set(bytes: usize, file: impl Fn(usize) -> FileDescriptorProto) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(bytes + bytes / 8);
    for index in 0..number_of_files(bytes) {
        append(&mut buffer, file(index));
    }
    buffer
}

fn number_of_files(bytes: usize) -> usize {
    let one = FileDescriptorSet {
        file: vec![file(0, false)],
    };
    bytes / one.encoded_len() + 1
}

/// Sets concatenate as bytes.
fn append(buffer: &mut Vec<u8>, file: FileDescriptorProto) {
    let set = FileDescriptorSet { file: vec![file] };
    buffer.extend(set.encode_to_vec());
}

fn file(index: usize, is_new: bool) -> FileDescriptorProto {
    let package = format!(
        "Example.Company.Contracts.Area{}.Part{index:06}",
        index % 97
    );
    let is_broken = is_new && index % 20 == 7;
    let mut messages: Vec<_> = (0..12)
        .map(|number| message(&package, number, is_new))
        .collect();
    if is_broken {
        messages.pop();
        messages[0].field.pop();
        messages[1].field[0].name = Some("Renamed".to_owned());
        messages[2].field[0].r#type = Some(Type::Int64.into());
    }
    FileDescriptorProto {
        name: Some(format!("example/area{}/part{index:06}.proto", index % 97)),
        message_type: messages,
        enum_type: vec![EnumDescriptorProto {
            name: Some("ProcessingState".to_owned()),
            value: (0..5 + i32::from(is_new)).map(value).collect(),
            ..EnumDescriptorProto::default()
        }],
        service: ["Commands", "Queries"]
            .map(|name| service(&package, name))
            .into(),
        package: Some(package),
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    }
}

fn message(package: &str, number: usize, is_new: bool) -> DescriptorProto {
    let fields = 3 + number % 2 + usize::from(is_new);
    DescriptorProto {
        name: Some(format!("RegisteredThing{number:02}")),
        field: (0..fields)
            .map(|field| self::field(package, field))
            .collect(),
        ..DescriptorProto::default()
    }
}

fn field(package: &str, index: usize) -> FieldDescriptorProto {
    let (name, kind, type_name) = match index % 4 {
        0 => ("EventSequenceId", Type::String, None),
        1 => ("State", Type::Enum, Some("ProcessingState")),
        2 => ("Things", Type::Message, Some("RegisteredThing05")),
        _ => ("IsActive", Type::Bool, None),
    };
    let label = if index == 2 {
        Label::Repeated
    } else {
        Label::Optional
    };
    FieldDescriptorProto {
        name: Some(format!("{name}{index}")),
        number: Some(index as i32 + 1),
        label: Some(label.into()),
        r#type: Some(kind.into()),
        type_name: type_name.map(|name| format!(".{package}.{name}")),
        json_name: Some(format!("{name}{index}")),
        ..FieldDescriptorProto::default()
    }
}

fn value(number: i32) -> EnumValueDescriptorProto {
    EnumValueDescriptorProto {
        name: Some(format!("PROCESSING_STATE_Value{number}")),
        number: Some(number),
        options: None,
    }
}

fn service(package: &str, name: &str) -> ServiceDescriptorProto {
    ServiceDescriptorProto {
        name: Some(name.to_owned()),
        method: (0..4)
            .map(|number| MethodDescriptorProto {
                name: Some(format!("Handle{number}")),
                input_type: Some(format!(".{package}.RegisteredThing{number:02}")),
                output_type: Some(format!(".{package}.RegisteredThing{:02}", number + 4)),
                server_streaming: (number == 3).then_some(true),
                ..MethodDescriptorProto::default()
            })
            .collect(),
        options: None,
    }
}
