//! Sets that contradict themselves, are cut short, or try to exhaust the reader.

use chronicle_connection::{ContractError, Schema, diff};

#[test]
fn a_file_or_a_message_may_stand_in_a_set_twice_with_the_same_content() {
    let once =
        set("package k; message M { string a = 1; int32 b = 2; } enum E { A = 0; } service S {}");
    let twice = read(&[&once[..], &once].concat()).unwrap();
    assert_eq!(diff(&read(&once).unwrap(), &twice), []);
    assert_eq!(diff(&twice, &read(&once).unwrap()), []);
}

#[test]
fn a_name_that_is_declared_twice_with_different_content_is_named_whatever_the_order() {
    for (one, other, symbol) in [
        (
            "message M { string a = 1; }",
            "message M { int32 a = 1; }",
            "k.M",
        ),
        ("message M { string a = 1; }", "message M {}", "k.M"),
        (
            "message M { string a = 1; }",
            "message M { oneof o { string a = 1; } }",
            "k.M",
        ),
        ("enum E { A = 0; }", "enum E { B = 0; }", "k.E"),
        (
            "service S { rpc A (M) returns (M); }",
            "service S { rpc A (stream M) returns (M); }",
            "k.S",
        ),
        ("message X {}", "enum X { A = 0; }", "k.X"),
        ("message X {}", "service X {}", "k.X"),
        ("enum X { A = 0; }", "service X {}", "k.X"),
    ] {
        let one = set(&format!("package k; {one}"));
        let other = set(&format!("package k; {other}"));
        let expected = ContractError::DeclaredTwice(symbol.to_owned());
        for both in [[&one[..], &other].concat(), [&other[..], &one].concat()] {
            assert_eq!(read(&both).unwrap_err(), expected, "{symbol}");
        }
        assert!(expected.to_string().contains(symbol));
    }
}

#[test]
fn a_member_that_is_declared_twice_is_named() {
    for (text, symbol) in [
        (
            "message M { string a = 1; string b = 1; }",
            "k.M, field number 1",
        ),
        ("message M { string a = 1; string a = 2; }", "k.M.a"),
        ("enum E { A = 0; A = 1; }", "k.E.A"),
        (
            "service S { rpc A (M) returns (M); rpc A (M) returns (N); }",
            "k.S/A",
        ),
        // Of several, the smallest is named, wherever it stands.
        (
            "message A { string a = 1; string a = 2; } message B { string b = 1; string b = 2; }",
            "k.A.a",
        ),
        (
            "message B { string a = 1; string a = 2; } message A { string b = 1; string b = 2; }",
            "k.A.b",
        ),
    ] {
        let error = Schema::from_source_text(&format!("package k; {text}")).unwrap_err();
        assert_eq!(error, ContractError::DeclaredTwice(symbol.to_owned()));
    }
}

#[test]
fn nothing_and_rubbish_are_errors_and_never_an_empty_contract() {
    assert_eq!(read(&[]).unwrap_err(), ContractError::Empty);
    for bytes in [
        &[0x0a, 0x05, 0x0a][..],
        &[0x08],
        &[0x0b, 0x0c],
        &[0x0f],
        &[0x00, 0x00],
        &[0x80; 11],
        b"<html></html>",
        b"syntax = \"proto3\";",
    ] {
        assert!(
            matches!(read(bytes), Err(ContractError::Undecodable(_))),
            "{bytes:?}"
        );
    }
}

/// Forty levels are read, two hundred are refused; prost stops at one hundred.
#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| {
        let mut message = vec![0x0a, 1, b'L'];
        for _ in 0..levels {
            message = [vec![0x0a, 1, b'L'], field(0x1a, &message)].concat();
        }
        let file = [&b"\x0a\x07k.proto\x12\x01k"[..], &field(0x22, &message)].concat();
        field(0x0a, &file)
    };
    let deep = read(&nested(40)).unwrap();
    assert_eq!(diff(&deep, &deep), []);
    let error = read(&nested(200)).unwrap_err();
    assert!(
        matches!(&error, ContractError::Undecodable(text) if text.contains("nesting")),
        "{error}"
    );

    let groups = |levels: usize| [vec![0x7b; levels], vec![0x7c; levels]].concat();
    assert!(
        read(&groups(40)).is_ok(),
        "groups that nobody knows are skipped"
    );
    assert!(read(&groups(100_000)).is_err());

    let text = |levels: usize| format!("{}{}", "message A {".repeat(levels), "}".repeat(levels));
    assert!(Schema::from_source_text(&text(40)).is_ok());
    assert!(matches!(
        Schema::from_source_text(&text(200)),
        Err(ContractError::Text { .. })
    ));
    assert!(Schema::from_source_text(&"message A {".repeat(100_000)).is_err());
    let options = format!("option x = {}{};", "{".repeat(100_000), "}".repeat(100_000));
    assert_eq!(
        Schema::from_source_text(&options).unwrap_err(),
        ContractError::Empty
    );
}

/// Every declaration repeats the names around it, which a long package could abuse.
#[test]
fn names_that_would_fill_the_memory_are_refused() {
    let package = field(0x12, &[b'p'; 100_000]);
    let message = field(0x22, &[0x0a, 1, b'M']);
    let file = [package, message.repeat(10_000)].concat();
    let error = read(&field(0x0a, &file)).unwrap_err();
    assert!(matches!(error, ContractError::Undecodable(_)), "{error}");
}

#[test]
fn a_type_of_a_file_that_is_only_imported_is_unknown_and_not_removed() {
    let declares = |name: &str, declaration: &[u8]| {
        field(
            0x0a,
            &[
                &field(0x0a, name.as_bytes()),
                &b"\x12\x01k"[..],
                declaration,
            ]
            .concat(),
        )
    };
    let here = declares("k.proto", &field(0x22, b"\x0a\x01M"));
    let shared = declares("shared.proto", &field(0x22, b"\x0a\x01N"));
    let importing = declares(
        "k.proto",
        &[field(0x1a, b"shared.proto"), field(0x22, b"\x0a\x01M")].concat(),
    );
    let with_both = read(&[&here[..], &shared].concat()).unwrap();
    assert_eq!(diff(&with_both, &read(&importing).unwrap()), []);
    let findings = diff(&with_both, &read(&here).unwrap());
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].path, "k.N");
}

/// The bytes of a set with these declarations.
fn set(text: &str) -> Vec<u8> {
    let schema = Schema::from_source_text(text).unwrap();
    schema.descriptor_set().to_vec()
}

fn read(bytes: &[u8]) -> Result<Schema, ContractError> {
    Schema::from_descriptor_set(bytes.to_vec())
}

/// A length-delimited field of protobuf's wire format.
fn field(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut field = vec![tag];
    prost::encode_length_delimiter(content.len(), &mut field).unwrap();
    field.extend(content);
    field
}
