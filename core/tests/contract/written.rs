//! Contracts that are written and read again.

use crate::{
    compilers::{compiled, protoc, tonic},
    older_server, published,
};
use chronicle_connection::{
    Contract, ContractError, IncompatibilityKind as Kind, ProtoFile, Schema, diff,
};
use prost::Message as _;
use prost_types::{FileDescriptorSet, field_descriptor_proto::Type};

#[test]
fn a_published_contract_is_the_same_when_it_is_read_again() {
    for (name, bytes) in published::sets() {
        let schema = Schema::from_descriptor_set(bytes).unwrap();
        let set = schema.to_descriptor_set().unwrap();
        let again = Schema::from_descriptor_set(set.clone()).unwrap();
        assert_same(&name, &schema, &again);
        assert_eq!(again.to_descriptor_set().unwrap(), set, "{name}");

        let files = schema.to_proto_files().unwrap();
        let by_protox = compiled(&files);
        assert_same_but_for_a_clash(&name, &schema, &by_protox);
        assert_eq!(by_protox.to_proto_files().unwrap(), files, "{name}");
        assert_eq!(diff(&schema, &text(&files)), [], "{name}");
        assert_eq!(diff(&text(&files), &schema), [], "{name}");
    }
}

#[test]
fn the_files_of_a_published_contract_suit_every_compiler() {
    for (name, bytes) in published::sets() {
        let schema = Schema::from_descriptor_set(bytes).unwrap();
        let files = schema.to_proto_files().unwrap();
        if let Some(by_protoc) = protoc(&name, &files) {
            assert_same_but_for_a_clash(&name, &schema, &by_protoc);
        }
        // Generating code takes its time, so this is for the oldest, a late and the newest.
        let is_tried = ["15.7.1", "16.34.0", "17-z"]
            .iter()
            .any(|one| name.ends_with(one));
        if !is_tried {
            continue;
        }
        let packages = files.iter().map(|file| {
            let mut lines = file.content.lines();
            lines.find_map(|line| line.strip_prefix("package ")?.strip_suffix(';'))
        });
        let mut rust: Vec<_> = packages
            .map(|package| format!("{}.rs", package.unwrap().to_lowercase()))
            .collect();
        rust.sort();
        assert_eq!(tonic(&name, &files), rust, "{name}");
    }
}

/// The text lacks what it imports and the prefixes of enum values that clash; what is written of it
/// is the published set nevertheless.
#[test]
fn what_is_written_of_an_older_servers_text_is_the_published_contract() {
    for (name, bytes) in published::sets() {
        let published = Schema::from_descriptor_set(bytes.clone()).unwrap();
        let set = FileDescriptorSet::decode(bytes).unwrap();
        let told = Schema::from_source_text(&older_server::print(&set, "\r\n")).unwrap();
        let written = Schema::from_descriptor_set(told.to_descriptor_set().unwrap()).unwrap();
        assert_same_but_for_a_clash(&name, &published, &written);
        assert_eq!(diff(&told, &written), [], "{name}");
        assert_eq!(diff(&written, &told), [], "{name}");

        let files = told.to_proto_files().unwrap();
        assert_same(&name, &written, &compiled(&files));
        assert_eq!(written.to_proto_files().unwrap(), files, "{name}");
        if let Some(by_protoc) = protoc(&format!("{name}-text"), &files) {
            assert_same(&name, &written, &by_protoc);
        }
    }
}

#[test]
fn a_package_is_written_as_one_file_that_people_can_read() {
    let schema = Schema::from_source_text(
        "syntax = \"proto3\"; package a.b;
        message Move { .bcl.Guid Id = 4; oneof Where { string Left = 3; Kind Right = 5; }
            map<string,Move> Others = 1; repeated int32 Numbers = 2; optional bool Sure = 6;
            message Inner { Mode m = 1; enum Mode { m = 0; Fast = -1; } } Inner In = 7; }
        enum Kind { Big = 1; None = 0; Large = 1; }
        enum State { None = 0; Moving = 1; }
        service S { rpc Move (Move) returns (stream Move); rpc Halt (stream .google.protobuf.Empty) returns (Move); }
        syntax = \"proto3\"; message Bare { a.b.Kind kind = 1; }",
    )
    .unwrap();
    let files = schema.to_proto_files().unwrap();
    let names: Vec<&str> = files.iter().map(|file| &*file.name).collect();
    assert_eq!(
        names,
        ["a.b.proto", "no-package.proto", "protobuf-net/bcl.proto"]
    );
    assert_eq!(
        files[0].content,
        "\
syntax = \"proto3\";

package a.b;

import \"google/protobuf/empty.proto\";
import \"protobuf-net/bcl.proto\";

service S {
  rpc Halt(stream .google.protobuf.Empty) returns (.a.b.Move);
  rpc Move(.a.b.Move) returns (stream .a.b.Move);
}

message Move {
  map<string, .a.b.Move> Others = 1;
  repeated int32 Numbers = 2;
  oneof Where {
    string Left = 3;
    .a.b.Kind Right = 5;
  }
  .bcl.Guid Id = 4;
  optional bool Sure = 6;
  .a.b.Move.Inner In = 7;
  message Inner {
    .a.b.Move.Inner.Mode m = 1;
    enum Mode {
      MODE_m = 0;
      Fast = -1;
    }
  }
}

enum Kind {
  option allow_alias = true;
  KIND_None = 0;
  Big = 1;
  Large = 1;
}

enum State {
  STATE_None = 0;
  Moving = 1;
}
"
    );
    assert_eq!(
        files[1].content,
        "syntax = \"proto3\";\n\nimport \"a.b.proto\";\n\nmessage Bare {\n  .a.b.Kind kind = 1;\n}\n"
    );
    assert!(
        !files[2].content.contains("NetObjectProxy"),
        "nobody refers to it"
    );
    compiled(&files);
}

#[test]
fn a_message_that_stands_there_twice_keeps_what_is_nested_in_either() {
    let schema = Schema::from_source_text(
        "package p;
        message M { int32 a = 1; message One { message Deep {} } }
        message M { int32 a = 1; message Two {} message One { enum Mode { None = 0; } } }",
    )
    .unwrap();
    let set = schema.to_descriptor_set().unwrap();
    assert_same("twice", &schema, &Schema::from_descriptor_set(set).unwrap());
    assert_same(
        "twice",
        &schema,
        &compiled(&schema.to_proto_files().unwrap()),
    );
}

/// Whatever text may name of what it leaves out.
#[test]
fn every_import_that_is_known_is_supplied() {
    let names = [
        ".bcl.Guid",
        ".bcl.DateTime",
        ".bcl.TimeSpan",
        ".bcl.DateTimeOffset",
        ".bcl.Decimal",
        ".bcl.NetObjectProxy",
        ".bcl.TimeSpanScale",
        "bcl.Guid",
        "google.protobuf.Any",
        ".google.protobuf.Duration",
        ".google.protobuf.Empty",
        ".google.protobuf.FieldMask",
        ".google.protobuf.Struct",
        ".google.protobuf.NullValue",
        ".google.protobuf.Timestamp",
        ".google.protobuf.StringValue",
    ];
    for name in names {
        let text = format!("package p; message M {{ {name} a = 1; repeated {name} b = 2; }}");
        let told = Schema::from_source_text(&text).unwrap();
        let files = told.to_proto_files().unwrap();
        let written = Schema::from_descriptor_set(told.to_descriptor_set().unwrap()).unwrap();
        assert_same(name, &written, &compiled(&files));
        assert_eq!(diff(&told, &written), [], "{name}");
        assert_eq!(diff(&written, &told), [], "{name}");
        let has_proxy = files
            .iter()
            .any(|file| file.content.contains("NetObjectProxy {"));
        assert_eq!(has_proxy, name == ".bcl.NetObjectProxy", "{name}");
    }
}

#[test]
fn proto2_keeps_its_labels() {
    let files = [ProtoFile {
        name: "p.proto".to_owned(),
        content: "syntax = \"proto2\";\n\npackage p;\n\nmessage M {\n  required string a = 1;\n  \
                  optional .p.E b = 2;\n  repeated int32 c = 3 [packed = true];\n}\n\nenum E {\n  \
                  ONE = 1;\n  NONE = 0;\n}\n"
            .to_owned(),
    }];
    let schema = compiled(&files);
    assert_eq!(schema.to_proto_files().unwrap(), files);
    let set = schema.to_descriptor_set().unwrap();
    assert_same(
        "proto2",
        &schema,
        &Schema::from_descriptor_set(set).unwrap(),
    );
}

#[test]
fn a_contract_writes_itself_with_what_a_session_needs() {
    let text = "package p; message M {} service S { rpc Go (M) returns (M); }";
    let contract = Contract::from_source_text(text, "9.1.0").unwrap();
    let set = contract.to_descriptor_set().unwrap();
    let again = Contract::from_descriptor_set(set, "9.1.0").unwrap();
    assert_eq!(again, contract);
    let files = contract.to_proto_files().unwrap();
    let names: Vec<&str> = files.iter().map(|file| &*file.name).collect();
    assert_eq!(
        names,
        ["Cratis.Chronicle.Contracts.Clients.proto", "p.proto"]
    );
    assert_same("files", contract.schema(), &compiled(&files));

    let part = contract.only(&["p.S"]).unwrap();
    let set = part.to_descriptor_set().unwrap();
    assert_same(
        "part",
        part.schema(),
        &Schema::from_descriptor_set(set).unwrap(),
    );
}

#[test]
fn what_is_imported_and_not_there_stays_unknown_or_is_supplied() {
    let whole = Schema::from_source_text(
        "package p; message M { .bcl.TimeSpan a = 1; .google.protobuf.Timestamp b = 2; .x.Y c = 3; }
        syntax = \"proto3\"; package x; message Y {}",
    )
    .unwrap();
    let whole = whole.to_descriptor_set().unwrap();
    let mut set = FileDescriptorSet::decode(whole.clone()).unwrap();
    set.file.retain(|file| file.package() == "p");
    let part = Schema::from_descriptor_set(set.encode_to_vec()).unwrap();
    let written = Schema::from_descriptor_set(part.to_descriptor_set().unwrap()).unwrap();
    assert_eq!(diff(&part, &written), []);
    assert_eq!(diff(&written, &part), []);
    let whole = Schema::from_descriptor_set(whole).unwrap();
    assert_eq!(
        diff(&whole, &written),
        [],
        "x.proto is imported, so Y is not gone"
    );
    assert_eq!(
        part.to_proto_files().unwrap_err().to_string(),
        "the contract cannot be written: p.M.c is of the type \"x.Y\", which is declared \
         nowhere; add the file that declares it"
    );
}

#[test]
fn what_cannot_be_written_is_refused_by_name() {
    for (text, complaint) in [
        (
            "package a; message A { b.B b = 1; } message C {}
             syntax = \"proto3\"; package b; message B { a.C c = 1; }",
            "a.proto, b.proto import each other in a circle, so that no compiler takes a file for \
             each package",
        ),
        (
            "package p; enum E { A = 1; }",
            "p.E has no value of number 0, which proto3 demands; add it",
        ),
        (
            "package p; enum E { }",
            "p.E has no values, and an enum needs one; add it",
        ),
        (
            "package p; message M { int32 a = 19000; }",
            "p.M.a has the number 19000, which protobuf does not allow",
        ),
        (
            "package p; message Ä {}",
            "\"Ä\" in \"p\" is no name of protobuf",
        ),
        (
            "package ..; message M {}",
            "\"\" in \"..\" is no name of protobuf",
        ),
        (
            "package p; enum E { E_A = 0; A = 1; } enum F { A = 0; }",
            "p.E_A clashes with another name, even with its enum's name in front of it",
        ),
        (
            "package p; message M {} syntax = \"proto3\"; package P; message M {}",
            "p.proto is the same name as P.proto on many file systems",
        ),
        (
            "package p; service S { rpc Go (M) returns (M); }",
            "p.S.Go is of the type \"M\", which is declared nowhere; add the file that declares it",
        ),
        (
            "package p; message M {} enum E { A = 0; } service S { rpc Go (M) returns (E); }",
            "p.S.Go is of the type \"p.E\", which is declared as an enum and used as a message; \
             correct one of the two",
        ),
    ] {
        let written = Schema::from_source_text(text).unwrap().to_proto_files();
        let Err(error @ ContractError::NotWritable { .. }) = written else {
            panic!("{text}: {written:?}");
        };
        let expected = format!("the contract cannot be written: {complaint}");
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

#[test]
fn what_is_used_as_what_it_is_not_is_refused_by_name() {
    let text = "package p; message M { E e = 1; M m = 2; } enum E { A = 0; }";
    let set = Schema::from_source_text(text).unwrap();
    let set = FileDescriptorSet::decode(set.descriptor_set().clone()).unwrap();
    for (field, kind, complaint) in [
        (
            0,
            Type::Message,
            "p.M.e is of the type \"p.E\", which is declared as an enum and used as a message",
        ),
        (
            1,
            Type::Enum,
            "p.M.m is of the type \"p.M\", which is declared as a message and used as an enum",
        ),
    ] {
        let mut set = set.clone();
        set.file[0].message_type[0].field[field].r#type = Some(kind.into());
        let schema = Schema::from_descriptor_set(set.encode_to_vec()).unwrap();
        let error = schema.to_proto_files().unwrap_err().to_string();
        assert_eq!(
            error,
            format!("the contract cannot be written: {complaint}; correct one of the two")
        );
    }
}

/// Names in a set are bytes that anybody can have made up; what is written must not say more than
/// that they are names.
#[test]
fn names_cannot_smuggle_anything_into_a_file() {
    let text = "package p; message NAMEX { string NAMEY = 1; oneof NAMEO { bool b = 2; } }
        enum NAMEE { NAMEV = 0; } service NAMES { rpc NAMED (NAMEX) returns (NAMEX); }";
    let set = Schema::from_source_text(text)
        .unwrap()
        .descriptor_set()
        .to_vec();
    Schema::from_descriptor_set(set.clone())
        .unwrap()
        .to_proto_files()
        .unwrap();
    for name in [
        "NAMEX", "NAMEY", "NAMEO", "NAMEE", "NAMEV", "NAMES", "NAMED",
    ] {
        for evil in [" { } ", "a\n//\n", "a;b;c", "../a/", "1abcd", "a.b.c"] {
            let mut set = set.clone();
            let evil = &evil.as_bytes()[..5];
            for place in 0..set.len() - 5 {
                if &set[place..place + 5] == name.as_bytes() {
                    set[place..place + 5].copy_from_slice(evil);
                }
            }
            let schema = Schema::from_descriptor_set(set).unwrap();
            let written = schema.to_proto_files();
            assert!(written.is_err(), "{name} {evil:?} {written:?}");
        }
    }
}

fn assert_same(name: &str, one: &Schema, other: &Schema) {
    assert_eq!(diff(one, other), [], "{name}");
    assert_eq!(diff(other, one), [], "{name}");
    assert!(one == other, "{name}");
}

/// Two published states declare an enum value that no compiler takes, since a message beside its
/// enum has the same name.
fn assert_same_but_for_a_clash(name: &str, published: &Schema, written: &Schema) {
    if !["chronicle-17-a", "chronicle-17-b"].contains(&name) {
        return assert_same(name, published, written);
    }
    let enum_name = "Cratis.Chronicle.Contracts.EventSequences.EventSequenceQuerySortBy";
    for (findings, path) in [
        (diff(published, written), "EventType"),
        (
            diff(written, published),
            "EVENT_SEQUENCE_QUERY_SORT_BY_EventType",
        ),
    ] {
        let findings: Vec<_> = findings.iter().map(|one| (one.kind, &*one.path)).collect();
        let path = format!("{enum_name}.{path}");
        assert_eq!(findings, [(Kind::EnumValueRenamed, &*path)], "{name}");
    }
}

fn text(files: &[ProtoFile]) -> Schema {
    let texts: Vec<&str> = files.iter().map(|file| &*file.content).collect();
    Schema::from_source_text(&texts.join("\n")).unwrap()
}
