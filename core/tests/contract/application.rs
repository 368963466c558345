//! Contracts as applications hand them in.

use crate::published;
use chronicle_connection::{Contract, ContractError};
use prost::Message as _;
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    MethodDescriptorProto, ServiceDescriptorProto, field_descriptor_proto::Label,
};
use std::collections::BTreeMap;

#[test]
fn the_default_contract_declares_the_session_and_claims_the_oldest_version() {
    let contract = Contract::default();
    assert_eq!(contract.protocol_version(), "15.7.1");
    let set = FileDescriptorSet::decode(contract.descriptor_set().clone()).unwrap();
    let shape = session_shape(&set);
    assert_eq!(
        shape.methods.keys().collect::<Vec<_>>(),
        ["Connect", "ConnectionKeepAlive"]
    );
    assert_eq!(shape.connect_request.len(), 3);
}

#[test]
fn a_set_with_the_session_in_it_is_sent_as_it_is() {
    let bytes = Contract::default().descriptor_set().clone();
    let contract = Contract::from_descriptor_set(bytes.clone(), "17.2.0").unwrap();
    assert_eq!(*contract.descriptor_set(), bytes);
    assert_eq!(contract.protocol_version(), "17.2.0");
}

#[test]
fn the_session_is_added_to_a_set_without_it() {
    let own = FileDescriptorSet {
        file: vec![file_with_service("orders.proto", "orders", "Orders", &[])],
    };
    let contract = Contract::from_descriptor_set(own.encode_to_vec(), "17.2.0").unwrap();
    let merged = FileDescriptorSet::decode(contract.descriptor_set().clone()).unwrap();
    assert_eq!(
        file_names(&merged),
        [
            "orders.proto",
            "google/protobuf/empty.proto",
            "session.proto"
        ]
    );
    assert_eq!(session_shape(&merged), session_shape(&default_set()));
}

#[test]
fn a_service_of_the_same_name_in_another_package_is_not_the_sessions() {
    let own = FileDescriptorSet {
        file: vec![file_with_service(
            "mine.proto",
            "mine",
            "ConnectionService",
            &[],
        )],
    };
    let contract = Contract::from_descriptor_set(own.encode_to_vec(), "17.2.0").unwrap();
    let merged = FileDescriptorSet::decode(contract.descriptor_set().clone()).unwrap();
    assert_eq!(session_shape(&merged), session_shape(&default_set()));
}

#[test]
fn an_import_that_is_there_already_is_not_added_again() {
    let mut own = default_set();
    own.file.retain(|file| file.service.is_empty());
    own.file
        .push(file_with_service("orders.proto", "orders", "Orders", &[]));
    let contract = Contract::from_descriptor_set(own.encode_to_vec(), "17.2.0").unwrap();
    let merged = FileDescriptorSet::decode(contract.descriptor_set().clone()).unwrap();
    assert_eq!(
        file_names(&merged),
        [
            "google/protobuf/empty.proto",
            "orders.proto",
            "session.proto"
        ]
    );
}

#[test]
fn parts_of_the_set_that_this_version_does_not_know_survive_the_merge() {
    let mut bytes = FileDescriptorSet {
        file: vec![file_with_service("orders.proto", "orders", "Orders", &[])],
    }
    .encode_to_vec();
    let unknown_field = [0xfa, 0x3f, 0x02, b'h', b'i'];
    bytes.extend_from_slice(&unknown_field);
    let contract = Contract::from_descriptor_set(bytes.clone(), "17.2.0").unwrap();
    assert!(contract.descriptor_set().starts_with(&bytes));
}

#[test]
fn bytes_that_are_no_set_are_refused() {
    assert_eq!(build(Vec::new()), Err(ContractError::Empty));
    let cut = Contract::default().descriptor_set().slice(..100);
    assert!(matches!(
        build(cut.to_vec()),
        Err(ContractError::Undecodable(_))
    ));
    let source_text = b"syntax = \"proto3\";".to_vec();
    assert!(matches!(
        build(source_text),
        Err(ContractError::Undecodable(_))
    ));
}

#[test]
fn a_set_without_a_service_is_refused() {
    let mut set = default_set();
    set.file.retain(|file| file.service.is_empty());
    assert_eq!(build(set.encode_to_vec()), Err(ContractError::NoService));
}

#[test]
fn a_file_may_stand_in_the_set_twice_only_if_both_are_equal() {
    let mut set = default_set();
    set.file.extend(default_set().file);
    assert_eq!(build(set.encode_to_vec()), Ok(()));

    set.file[0].message_type[0].name = Some("Other".to_owned());
    let name = set.file[0].name().to_owned();
    assert_eq!(
        build(set.encode_to_vec()),
        Err(ContractError::FileTwice(name))
    );
}

#[test]
fn a_session_service_without_a_method_that_a_session_needs_is_refused() {
    let package = "Cratis.Chronicle.Contracts.Clients";
    for (methods, missing) in [
        (["Connect", "Other"], "ConnectionKeepAlive"),
        (["Other", "ConnectionKeepAlive"], "Connect"),
    ] {
        let set = FileDescriptorSet {
            file: vec![file_with_service(
                "c.proto",
                package,
                "ConnectionService",
                &methods,
            )],
        };
        assert_eq!(
            build(set.encode_to_vec()),
            Err(ContractError::MissingMethod(missing))
        );
    }
}

#[test]
fn names_that_the_session_needs_for_itself_are_refused() {
    let mut file = file_with_service("session.proto", "orders", "Orders", &[]);
    assert_eq!(
        build(
            FileDescriptorSet {
                file: vec![file.clone()]
            }
            .encode_to_vec()
        ),
        Err(ContractError::Clash("session.proto".to_owned()))
    );

    file.name = Some("clients.proto".to_owned());
    file.package = Some("Cratis.Chronicle.Contracts.Clients".to_owned());
    file.message_type.push(DescriptorProto {
        name: Some("ConnectRequest".to_owned()),
        ..DescriptorProto::default()
    });
    assert_eq!(
        build(FileDescriptorSet { file: vec![file] }.encode_to_vec()),
        Err(ContractError::Clash(
            "Cratis.Chronicle.Contracts.Clients.ConnectRequest".to_owned()
        ))
    );
}

/// With the published contracts at hand, they prove that the default one asks nothing of a server
/// that it does not have.
#[test]
fn every_published_contract_declares_the_session_as_the_default_contract_does() {
    let expected = session_shape(&default_set());
    for (name, bytes) in published::sets() {
        let contract = Contract::from_descriptor_set(bytes.clone(), "1.0.0").unwrap();
        assert_eq!(*contract.descriptor_set(), bytes, "{name}");

        let set = FileDescriptorSet::decode(bytes).unwrap();
        let shape = session_shape(&set);
        for (name, method) in &expected.methods {
            assert_eq!(shape.methods.get(name), Some(method), "{name}");
        }
        for (number, field) in &expected.connect_request {
            assert_eq!(shape.connect_request.get(number), Some(field), "{}", name);
        }
        assert_eq!(shape.keep_alive, expected.keep_alive, "{name}");
    }
}

fn build(bytes: Vec<u8>) -> Result<(), ContractError> {
    Contract::from_descriptor_set(bytes, "1.0.0").map(|_| ())
}

fn default_set() -> FileDescriptorSet {
    FileDescriptorSet::decode(Contract::default().descriptor_set().clone()).unwrap()
}

fn file_names(set: &FileDescriptorSet) -> Vec<&str> {
    set.file.iter().map(FileDescriptorProto::name).collect()
}

fn file_with_service(
    name: &str,
    package: &str,
    service: &str,
    methods: &[&str],
) -> FileDescriptorProto {
    FileDescriptorProto {
        name: Some(name.to_owned()),
        package: Some(package.to_owned()),
        service: vec![ServiceDescriptorProto {
            name: Some(service.to_owned()),
            method: methods
                .iter()
                .map(|name| MethodDescriptorProto {
                    name: Some((*name).to_owned()),
                    ..MethodDescriptorProto::default()
                })
                .collect(),
            ..ServiceDescriptorProto::default()
        }],
        ..FileDescriptorProto::default()
    }
}

/// What the compatibility rules look at.
#[derive(Debug, PartialEq)]
struct SessionShape {
    methods: BTreeMap<String, MethodShape>,
    connect_request: BTreeMap<i32, FieldShape>,
    keep_alive: BTreeMap<i32, FieldShape>,
}

/// Input, output, whether the client streams, whether the server does.
type MethodShape = (String, String, bool, bool);

/// Name, type, whether it is repeated, whether it is in a oneof.
type FieldShape = (String, i32, bool, bool);

fn session_shape(set: &FileDescriptorSet) -> SessionShape {
    let files = || {
        set.file
            .iter()
            .filter(|file| file.package() == "Cratis.Chronicle.Contracts.Clients")
    };
    let service = files()
        .flat_map(|file| &file.service)
        .find(|service| service.name() == "ConnectionService")
        .expect("the session's service");
    let message = |name: &str| {
        let message = files()
            .flat_map(|file| &file.message_type)
            .find(|message| message.name() == name)
            .expect("the session's message");
        message.field.iter().map(field_shape).collect()
    };
    SessionShape {
        methods: service.method.iter().map(method_shape).collect(),
        connect_request: message("ConnectRequest"),
        keep_alive: message("ConnectionKeepAlive"),
    }
}

fn method_shape(method: &MethodDescriptorProto) -> (String, MethodShape) {
    (
        method.name().to_owned(),
        (
            method.input_type().to_owned(),
            method.output_type().to_owned(),
            method.client_streaming(),
            method.server_streaming(),
        ),
    )
}

fn field_shape(field: &FieldDescriptorProto) -> (i32, FieldShape) {
    (
        field.number(),
        (
            field.name().to_owned(),
            field.r#type() as i32,
            field.label() == Label::Repeated,
            field.oneof_index.is_some(),
        ),
    )
}
