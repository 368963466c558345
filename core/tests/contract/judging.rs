//! Findings as people read them, parts of contracts, and the corpus of the fuzzer.

use crate::{compilers, fuzzed, published};
use chronicle_connection::{
    Contract, ContractError, IncompatibilityKind as Kind, ProtoFile, Schema, compare, diff,
};
use prost::Message as _;
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    OneofDescriptorProto, field_descriptor_proto::Type,
};
use protox::prost_reflect::DescriptorPool;
use std::{fs, path::Path};

#[test]
fn every_finding_says_what_was_what_is_and_what_that_means() {
    let before = "message A { string a = 1; int32 b = 2; repeated bytes c = 3; B d = 4; oneof o { string e = 5; } }
        message B {} enum E { X = 0; Y = 1; }
        service S { rpc Go (A) returns (A); rpc Stop (A) returns (A); rpc See (A) returns (A); }";
    let after = "message A { repeated string a = 1; repeated int32 b = 2; bytes c = 3; E D = 4; string e = 5; }
        message B {} enum E { Z = 0; }
        service S { rpc Go (A) returns (stream B); rpc See (stream A) returns (A); }";
    let findings = diff(&schema(before), &schema(after));
    let told: Vec<_> = findings
        .iter()
        .map(|finding| {
            assert!(finding.message.len() > 20, "{finding}");
            let after = finding.after.as_deref().unwrap_or("-");
            format!(
                "{} {}: {} -> {after}",
                finding.kind, finding.path, finding.before
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "field-label-changed A.a: singular -> repeated",
            "field-label-changed A.b: singular -> repeated",
            "field-label-changed A.c: repeated -> singular",
            "field-type-changed A.d: message B -> enum E",
            "field-renamed A.d: d -> D",
            "field-oneof-changed A.e: oneof o -> no oneof",
            "enum-value-renamed E.X: X -> Z",
            "enum-value-removed E.Y: Y = 1 -> -",
            "method-signature-changed S/Go: (A) returns (A) -> (A) returns (B)",
            "method-streaming-changed S/Go: unary call -> server stream",
            "method-streaming-changed S/See: unary call -> client stream",
            "method-removed S/Stop: the unary call (A) returns (A) -> -",
        ]
    );
    // Of the labels, the sentence says which still decode.
    assert!(
        findings[0].message.contains("still decodes"),
        "{}",
        findings[0]
    );
    assert!(findings[1].message.contains("packed"), "{}", findings[1]);
    assert!(
        findings[2].message.contains("still decode"),
        "{}",
        findings[2]
    );
}

#[test]
fn no_two_scalar_types_are_the_same() {
    let scalars = [
        "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32",
        "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes",
    ];
    let with = |scalar: &str| schema(&format!("message M {{ {scalar} a = 1; }}"));
    for was in scalars {
        for is in scalars {
            let findings = diff(&with(was), &with(is)).into_iter();
            let told: Vec<_> = findings
                .map(|one| (one.kind, one.before, one.after))
                .collect();
            match was == is {
                true => assert_eq!(told, []),
                false => assert_eq!(
                    told,
                    [(Kind::FieldTypeChanged, was.to_owned(), Some(is.to_owned()))]
                ),
            }
        }
    }
}

#[test]
fn a_message_a_group_and_an_enum_of_one_name_are_three_types() {
    let kinds = [Type::Message, Type::Group, Type::Enum];
    for was in kinds {
        for is in kinds {
            let with = |kind| {
                one_field(FieldDescriptorProto {
                    r#type: Some(i32::from(kind)),
                    type_name: Some(".p.T".to_owned()),
                    ..FieldDescriptorProto::default()
                })
            };
            let findings = diff(&with(was), &with(is)).len();
            assert_eq!(findings, usize::from(was != is), "{was:?} to {is:?}");
        }
    }
}

#[test]
fn the_oneof_that_stands_for_an_optional_field_is_none() {
    let plain = one_field(FieldDescriptorProto::default());
    let optional = one_field(FieldDescriptorProto {
        oneof_index: Some(0),
        proto3_optional: Some(true),
        ..FieldDescriptorProto::default()
    });
    let in_oneof = one_field(FieldDescriptorProto {
        oneof_index: Some(0),
        ..FieldDescriptorProto::default()
    });
    for (was, is, changes) in [
        (&plain, &optional, 0),
        (&optional, &plain, 0),
        (&plain, &in_oneof, 1),
        (&in_oneof, &optional, 1),
        (&optional, &in_oneof, 1),
    ] {
        let findings = diff(was, is);
        assert_eq!(findings.len(), changes, "{findings:?}");
        assert!(
            findings
                .iter()
                .all(|one| one.kind == Kind::FieldOneOfChanged)
        );
    }
}

#[test]
fn of_aliases_the_first_is_the_name() {
    let with = |values: &str| schema(&format!("enum E {{ option allow_alias = true; {values} }}"));
    let one = with("A = 0; B = 1;");
    assert_eq!(diff(&one, &with("A = 0; B = 1; NEW = 1;")), []);
    let findings = diff(&one, &with("A = 0; NEW = 1; B = 1;"));
    let told: Vec<_> = findings.iter().map(|one| (one.kind, &*one.path)).collect();
    assert_eq!(told, [(Kind::EnumValueRenamed, "E.B")]);
    assert_eq!(diff(&with("A = -1;"), &with("B = 1; A = -1;")), []);
}

#[test]
fn a_newer_client_may_have_gained_data_and_nothing_else() {
    let server = schema("message A {} service S {}");
    let client =
        schema("message A { E e = 1; } enum E { X = 0; } service S { rpc Go (A) returns (A); }");
    let newer = compare(&client, "2.0.0", &server, "1.9.0");
    let kinds = |findings: &[chronicle_connection::Incompatibility]| {
        findings
            .iter()
            .map(|finding| finding.kind)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        kinds(&newer.missing_on_server),
        [Kind::FieldRemoved, Kind::EnumRemoved]
    );
    assert_eq!(kinds(&newer.incompatibilities), [Kind::MethodRemoved]);
    assert!(!newer.is_compatible());
    assert!(compare(&client, "2.0.0", &client, "1.9.0").is_compatible());
    for version in ["2.0.0", "2.1.0", "", "dev"] {
        let other = compare(&client, "2.0.0", &server, version);
        assert_eq!(other.missing_on_server, [], "{version}");
        assert_eq!(other.incompatibilities.len(), 3, "{version}");
    }
}

#[test]
fn a_part_of_a_contract_holds_what_its_services_reach_and_the_session() {
    let whole = contract(
        "package shop; message Order { Item item = 1; map<string,Note> notes = 2; }
         message Item { Size size = 1; message Inner { Item self = 1; } } enum Size { S = 0; }
         message Note {} message Unused { Other other = 1; } message Other {}
         service Orders { rpc Place (Order) returns (.shop.common.Done); }
         service Others { rpc Use (Unused) returns (Other); }
         syntax = \"proto3\"; package shop.common; message Done {} message Spare {}",
    );
    let part = whole.only(&["shop.Orders"]).unwrap();
    let missing: Vec<_> = diff(whole.schema(), part.schema())
        .into_iter()
        .map(|finding| finding.path)
        .collect();
    assert_eq!(
        missing,
        [
            "shop.Other",
            "shop.Others",
            "shop.Unused",
            "shop.common.Spare"
        ]
    );
    assert_eq!(diff(part.schema(), whole.schema()), []);
    assert_eq!(
        (part.protocol_version(), part.claimed_version()),
        ("9.0.0", "15.7.1")
    );
    assert_eq!(whole.claimed_version(), "9.0.0");

    let none = whole.only(&[]).unwrap();
    assert_eq!(diff(none.schema(), Contract::default().schema()), []);
    assert_eq!(
        whole.only(&["shop.Order"]).unwrap_err(),
        ContractError::NoSuchService("shop.Order".to_owned())
    );
}

#[test]
fn schemas_are_equal_where_they_declare_the_same() {
    let (message, list, service) = (
        "message M { int32 a = 1; }",
        "enum E { X = 0; }",
        "service S { rpc Go (M) returns (M); }",
    );
    let of = |parts: [&str; 3]| schema(&parts.concat());
    let one = of([message, list, service]);
    assert_eq!(one, of([service, list, message]));
    for other in [
        of(["message M { int32 b = 1; }", list, service]),
        of(["message M { int32 a = 1; int32 b = 2; }", list, service]),
        of([message, "enum E { Y = 0; }", service]),
        of([message, "enum E { X = 0; Y = 1; }", service]),
        of([message, "enum F { X = 0; }", service]),
        of([
            message,
            list,
            "service S { rpc Go (M) returns (stream M); }",
        ]),
        of([message, list, "service S {}"]),
        of([message, list, ""]),
        of([message, "", service]),
        of(["message M { int32 a = 1; } message N {}", list, service]),
    ] {
        assert_ne!(one, other);
        assert_ne!(other, one);
    }
}

/// A set may leave it to its reader whether a field's type is a message or an enum.
#[test]
fn the_kind_of_a_named_type_is_found_where_it_is_left_open() {
    let told =
        schema("message M { N n = 1; E e = 2; int32 a = 3; } message N {} enum E { X = 0; }");
    let mut set = FileDescriptorSet::decode(told.descriptor_set().clone()).unwrap();
    let mut opened = 0;
    for field in &mut set.file[0].message_type[0].field {
        if field.type_name.is_some() {
            field.r#type = None;
            opened += 1;
        }
    }
    assert_eq!(opened, 2);
    let open = Schema::from_descriptor_set(set.encode_to_vec()).unwrap();
    assert_eq!(open, told);
}

/// Only what is declared in a file that is not there may still be somewhere.
#[test]
fn what_a_file_has_lost_is_gone_whoever_imports_the_file() {
    let set = |imported: &str| {
        let file = |name: &str, content: String| ProtoFile {
            name: name.to_owned(),
            content: format!("syntax = \"proto3\"; package p; {content}"),
        };
        compilers::compiled(&[
            file(
                "a.proto",
                "import \"b.proto\"; message A { B b = 1; }".to_owned(),
            ),
            file("b.proto", imported.to_owned()),
        ])
    };
    let (whole, less) = (set("message B {} message C {}"), set("message B {}"));
    // Nor does it matter that some other file is not there.
    let mut lacking = FileDescriptorSet::decode(less.descriptor_set().clone()).unwrap();
    lacking.file[0].dependency.push("c.proto".to_owned());
    let lacking = Schema::from_descriptor_set(lacking.encode_to_vec()).unwrap();
    for less in [less, lacking] {
        let findings = diff(&whole, &less);
        let told: Vec<_> = findings.iter().map(|one| (one.kind, &*one.path)).collect();
        assert_eq!(told, [(Kind::MessageRemoved, "p.C")]);
    }
}

#[test]
fn a_part_of_a_contract_extends_nothing_that_is_not_there() {
    let file = ProtoFile {
        name: "p.proto".to_owned(),
        content: "syntax = \"proto2\"; package p;
            message Other { extensions 100 to 200; }
            extend Other { optional string a = 100; }
            message Used { extend Other { optional string b = 101; }
                message Inner { extend Other { optional Used c = 102; } } }
            service S { rpc Go (Used) returns (Used); }"
            .to_owned(),
    };
    let set = compilers::protox(&[file]).unwrap();
    let whole = Contract::from_descriptor_set(set, "9.0.0").unwrap();
    let part = whole.only(&["p.S"]).unwrap();
    // It resolves every name.
    let linked = DescriptorPool::decode(part.descriptor_set().clone()).unwrap();
    assert!(linked.get_message_by_name("p.Used.Inner").is_some());
    assert_eq!(linked.get_message_by_name("p.Other"), None);
}

#[test]
fn a_part_of_a_published_contract_suits_the_whole_and_claims_nothing_beyond() {
    for (name, bytes) in published::sets() {
        let whole = Contract::from_descriptor_set(bytes, "16.34.0").unwrap();
        let services = ["Cratis.Chronicle.Contracts.EventSequences.EventSequences"];
        let part = whole.only(&services).unwrap();
        assert_eq!(diff(part.schema(), whole.schema()), [], "{name}");
        assert!(
            part.descriptor_set().len() * 2 < whole.descriptor_set().len(),
            "{name}"
        );
    }
}

#[test]
fn the_corpus_of_the_fuzzer_holds() {
    for (target, check) in [
        ("contract_binary", fuzzed::check_binary as fn(&[u8])),
        ("contract_text", fuzzed::check_text),
        ("contract_diff", fuzzed::check_diff),
    ] {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../fuzz/corpus")
            .join(target);
        let inputs: Vec<_> = fs::read_dir(corpus).unwrap().collect();
        assert!(!inputs.is_empty());
        for input in inputs {
            check(&fs::read(input.unwrap().path()).unwrap());
        }
    }
}

fn contract(text: &str) -> Contract {
    let schema = Schema::from_source_text(text).unwrap();
    Contract::from_descriptor_set(schema.descriptor_set().clone(), "9.0.0").unwrap()
}

fn schema(text: &str) -> Schema {
    let schema = Schema::from_source_text(text).unwrap();
    Schema::from_descriptor_set(schema.descriptor_set().clone()).unwrap()
}

/// A message of the package `p` with one field and one oneof.
fn one_field(field: FieldDescriptorProto) -> Schema {
    let message = DescriptorProto {
        name: Some("M".to_owned()),
        field: vec![FieldDescriptorProto {
            name: Some("a".to_owned()),
            number: Some(1),
            r#type: field.r#type.or(Some(Type::String.into())),
            ..field
        }],
        oneof_decl: vec![OneofDescriptorProto {
            name: Some("o".to_owned()),
            options: None,
        }],
        ..DescriptorProto::default()
    };
    let file = FileDescriptorProto {
        package: Some("p".to_owned()),
        message_type: vec![message],
        ..FileDescriptorProto::default()
    };
    let set = FileDescriptorSet { file: vec![file] };
    Schema::from_descriptor_set(set.encode_to_vec()).unwrap()
}
