//! Contracts as proto source text, the way older servers return them.

use crate::{older_server, published};
use chronicle_connection::{ContractError, Schema, diff};
use prost::Message as _;
use prost_types::FileDescriptorSet;

/// What text does not carry, and what is therefore not compared against it: the types of
/// `google.protobuf` and `bcl`, which it only imports, and the enum's name in front of enum values.
#[test]
fn the_text_and_the_set_of_a_published_contract_are_equal() {
    for (name, bytes) in published::sets() {
        let set = FileDescriptorSet::decode(bytes.clone()).unwrap();
        let from_set = Schema::from_descriptor_set(bytes).unwrap();
        for newline in ["\n", "\r\n"] {
            let text = older_server::print(&set, newline);
            let from_text = Schema::from_source_text(&text).unwrap();
            assert_eq!(diff(&from_set, &from_text), [], "{name}: set against text");
            assert_eq!(diff(&from_text, &from_set), [], "{name}: text against set");
        }
    }
}

#[test]
fn one_thing_less_in_the_text_of_a_published_contract_is_found() {
    for (name, bytes) in published::sets() {
        let set = FileDescriptorSet::decode(bytes.clone()).unwrap();
        let from_set = Schema::from_descriptor_set(bytes).unwrap();
        let text = older_server::print(&set, "\r\n");
        let lines: Vec<&str> = text.split("\r\n").collect();
        let is_member = |line: &&str| line.starts_with("   ") && line.contains(" = ");
        let rpc = lines.iter().position(|line| line.starts_with("   rpc "));
        let member = lines
            .iter()
            .position(|line| is_member(line) && !line.contains("//"));
        for line in [rpc.unwrap(), member.unwrap()] {
            let mut lines = lines.clone();
            let removed = lines.remove(line);
            let less = Schema::from_source_text(&lines.join("\r\n")).unwrap();
            let findings = diff(&from_set, &less);
            assert_eq!(findings.len(), 1, "{name}: {removed} {findings:?}");
        }
    }
}

#[test]
fn names_are_looked_up_from_the_inside_out_among_messages_and_enums_alone() {
    let written = "package a.b;
        message M { message Inner { T t = 1; } Inner i = 1; b.T outer = 2; .a.T top = 3; }
        message T { State State = 1; bcl.Guid id = 2; .google.protobuf.Empty none = 3; }
        enum State { T_None = 0; }
        service S { rpc T (T) returns (stream M.Inner); rpc M (.a.b.M) returns (a.T); }
        syntax = \"proto3\"; package a; message T {}";
    let full = "package a.b;
        message M {
            message Inner { .a.b.T t = 1; } .a.b.M.Inner i = 1; .a.b.T outer = 2; .a.T top = 3;
        }
        message T { .a.b.State State = 1; .bcl.Guid id = 2; .google.protobuf.Empty none = 3; }
        enum State { T_None = 0; }
        service S { rpc T (.a.b.T) returns (stream .a.b.M.Inner); rpc M (.a.b.M) returns (.a.T); }
        syntax = \"proto3\"; package a; message T {}";
    assert_eq!(diff(&text(written), &text(full)), []);
    assert_eq!(diff(&text(full), &text(written)), []);
}

#[test]
fn everything_that_servers_print_is_read() {
    let printed = text(
        "\u{feff}syntax = \"proto3\";\r\npackage p;\r\nimport public \"google/protobuf/empty.proto\";\r\n\
         option csharp_namespace = \"P\";\r\n\
         // default value could not be applied: \"{ ;\r\n\
         /* a block */\r\n\
         message M {\r\n   reserved 5, 7 to 9;\r\n   reserved \"old\";\r\n   option deprecated = true;\r\n\
            map<string,N> Names = 1;\r\n   repeated int32 Numbers = 2 [packed = false, default = 3];\r\n\
            optional string Text = 0x3 [default = \"a \\\" ] ; }\"];\r\n\
            oneof Choice { N One = 4; string Two = 010; }\r\n\
            extensions 100 to max;\r\n   ;\r\n}\r\n\
         message N { }\r\n\
         enum E {\r\n   option allow_alias = true;\r\n   reserved -3;\r\n   A = 0;\r\n   B = 0;\r\n   C = -2 [deprecated = true];\r\n}\r\n\
         service S { option deprecated = true; rpc Go (stream M) returns (stream N) { option x = { y: 1 }; } }\r\n",
    );
    let plain = text(
        "syntax = \"proto3\"; package p;
         message M { repeated NamesEntry Names = 1; repeated int32 Numbers = 2; string Text = 3;
           oneof Choice { N One = 4; string Two = 8; } message NamesEntry { string key = 1; N value = 2; } }
         message N {} enum E { A = 0; C = -2; }
         service S { rpc Go (stream M) returns (stream N); }",
    );
    assert_eq!(diff(&printed, &plain), []);
    assert_eq!(diff(&plain, &printed), []);
}

#[test]
fn an_enum_value_is_the_same_with_and_without_the_name_of_its_enum() {
    let set = |values: &str| {
        let schema = text(&format!("package p; {values}"));
        Schema::from_descriptor_set(schema.descriptor_set().clone()).unwrap()
    };
    let prefixed = set("enum JobStatus { JOB_STATUS_None = 0; JOB_STATUS_Done = 1; }");
    let raw = text("package p; enum JobStatus { None = 0; Done = 1; }");
    assert_eq!(diff(&prefixed, &raw), []);
    assert_eq!(diff(&raw, &prefixed), []);

    // Between two sets the whole name counts, and another prefix is another name.
    let raw_set = set("enum JobStatus { None = 0; Done = 1; }");
    assert_eq!(diff(&prefixed, &raw_set).len(), 2);
    // A value that clashes has the enum's name in front, even if it had it before.
    let twice = set("enum JobStatus { JOB_STATUS_None = 0; JOB_STATUS_JOB_STATUS_Done = 1; }");
    let once = text("package p; enum JobStatus { None = 0; JOB_STATUS_Done = 1; }");
    assert_eq!(diff(&twice, &once), []);
    assert_eq!(diff(&once, &twice), []);

    let other = text("package p; enum JobStatus { STATUS_None = 0; JOB_STATUS_Gone = 1; }");
    assert_eq!(diff(&prefixed, &other).len(), 2);
}

#[test]
fn what_is_no_source_text_is_refused_with_the_line() {
    for (text, line) in [
        ("syntax = \"proto3\"", 1),
        ("package p;\n\nmessage M {\n   string a = ;\n}", 4),
        ("message M {\r\n   string a = 99999999999;\r\n}", 2),
        ("message M {\n   string a = 1;\n", 3),
        ("/* never\nclosed", 1),
        ("option x = \"never\nclosed\";", 1),
        ("\n\nhello world", 3),
        ("service S {\n   rpc A (B) gives (C);\n}", 2),
        ("message {", 1),
        ("}", 1),
    ] {
        match Schema::from_source_text(text).unwrap_err() {
            ContractError::Text { line: told, .. } => assert_eq!(told, line, "{text}"),
            other => panic!("{text}: {other}"),
        }
    }
    for nothing in [
        "",
        " \r\n",
        "// nothing\n",
        "syntax = \"proto3\";\npackage p;\n",
    ] {
        assert_eq!(
            Schema::from_source_text(nothing),
            Err(ContractError::Empty),
            "{nothing:?}"
        );
    }
}

fn text(text: &str) -> Schema {
    Schema::from_source_text(text).unwrap()
}
