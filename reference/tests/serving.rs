//! Servers that serve a contract of somebody's choice judge clients by it.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests with files, and an origin of time"
)]

use chronicle_connection::Contract;
use chronicle_connection_proto::clients::CompatibilityRequest;
use chronicle_reference_server::model::{ModelConfig, ServerModel};
use serde_json::Value;
use std::{env, fs, io::Write as _, path::Path, time::Instant};

#[test]
fn published_contracts_are_judged_as_expected() {
    let Some(data) = env::var_os("CHRONICLE_TEST_DATA") else {
        // Not `eprintln!`, which the test harness swallows when a test passes.
        let note = "SKIPPED: set CHRONICLE_TEST_DATA to the directory with contracts/*.desc";
        writeln!(std::io::stderr().lock(), "{note}").unwrap();
        return;
    };
    let contracts = Path::new(&data).join("contracts");
    let read = |name: &str| fs::read(contracts.join(format!("{name}.desc"))).unwrap();
    let mut judged = 0;
    for case in fs::read_dir(contracts.join("expected")).unwrap() {
        let case = case.unwrap().path();
        let name = case.file_stem().unwrap().to_str().unwrap();
        let (client, server) = name.split_once("__").unwrap();
        let told: Vec<Value> = serde_json::from_slice(&fs::read(&case).unwrap()).unwrap();
        let told = told.iter().map(|finding| {
            let text = |field: &str| finding[field].as_str().unwrap();
            format!("{}: .{} (", pascal_case(text("kind")), text("path"))
        });
        let told: Vec<String> = told.collect();
        let found = judge(&read(server), "18.4.0", read(client), "");
        assert_eq!(found.len(), told.len(), "{name}: {found:#?}");
        for (found, told) in found.iter().zip(told) {
            assert!(
                found.starts_with(&told),
                "{name}: {found} in place of {told}"
            );
        }
        judged += 1;
    }
    assert!(judged > 0);
}

#[test]
fn who_expects_depends_on_the_versions() {
    let (narrow, wide) = (text("string a = 1;"), text("string a = 1; string b = 2;"));
    let missing = "FieldRemoved: .p.M.b (string b = 2 -> gone)";
    for (expects, contract, version, client, protocol_version, findings) in [
        ("the client", &narrow, "18.4.9", &wide, "99", &[missing][..]),
        ("the client", &wide, "18.4.9", &narrow, "99", &[]),
        ("the client", &narrow, "18.5.0", &wide, "18.5", &[missing]),
        ("the client", &narrow, "18.5.0", &wide, "", &[missing]),
        ("the server", &narrow, "18.5.0", &wide, "18.5.1", &[]),
        ("the server", &wide, "18.5.0", &narrow, "18.5.1", &[missing]),
    ] {
        let client = Contract::from_source_text(client, "1").unwrap();
        let client = client.descriptor_set().to_vec();
        let found = judge(contract.as_bytes(), version, client, protocol_version);
        assert_eq!(
            found, findings,
            "{expects} expects, {version} {protocol_version}"
        );
    }
    let found = judge(narrow.as_bytes(), "18.5.0", b"nonsense".to_vec(), "");
    assert_eq!(
        found,
        ["The descriptor set of the client could not be read."]
    );
}

#[test]
fn a_server_tells_the_text_that_it_was_given_if_a_session_can_be_had_with_it() {
    let model = |text: &str| ModelConfig::serving(text.as_bytes(), "17").unwrap();
    let whole = ModelConfig::default().schema + "// nothing\n";
    assert_eq!(model(&whole).schema, whole);
    let completed = model(&text("string a = 1;")).schema;
    for part in ["message M {\n  string a = 1;", "service ConnectionService"] {
        assert!(completed.contains(part), "{completed}");
    }
}

/// What a server of this contract and version finds. It says no where there is anything.
fn judge(contract: &[u8], version: &str, client: Vec<u8>, protocol_version: &str) -> Vec<String> {
    let config = ModelConfig::serving(contract, version).unwrap();
    let request = CompatibilityRequest {
        protocol_version: protocol_version.to_owned(),
        descriptor_set: client,
        ..CompatibilityRequest::default()
    };
    let model = ServerModel::new(config, Instant::now());
    let answer = model.check_compatibility(&request).unwrap();
    assert_eq!(answer.is_compatible, answer.incompatibilities.is_empty());
    assert_eq!(answer.server_protocol_version, version);
    answer.incompatibilities
}

fn text(fields: &str) -> String {
    format!("package p; message M {{ {fields} }} service S {{ rpc Go (M) returns (M); }}")
}

/// `FieldOneOfChanged` for `field-oneof-changed`.
fn pascal_case(kind: &str) -> String {
    let words = kind.split('-').map(|word| match word {
        "oneof" => "OneOf".to_owned(),
        word => word[..1].to_uppercase() + &word[1..],
    });
    words.collect()
}
