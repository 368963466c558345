//! The contracts that Chronicle published, judged as an independent implementation of the rules
//! judges them, and small sets for one rule each.

use bytes::Bytes;
use chronicle_connection::{Schema, diff};
use serde::Deserialize;
use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
};

#[test]
fn published_contracts_are_judged_as_expected() {
    let Some(contracts) = contracts() else { return };
    let mut judged = 0;
    for case in files(&contracts.join("expected"), ".json") {
        let (expected, actual) = stem(&case, ".json").split_once("__").unwrap();
        let read = |name: &str| schema(fs::read(contracts.join(format!("{name}.desc"))).unwrap());
        assert_eq!(
            found(&read(expected), &read(actual)),
            told(&case),
            "{expected} against {actual}"
        );
        judged += 1;
    }
    assert!(judged > 0);
}

#[test]
fn every_rule_is_judged_as_expected() {
    let Some(contracts) = contracts() else { return };
    let mut judged = 0;
    for case in files(&contracts.join("edge"), ".expected.json") {
        let name = stem(&case, ".expected.json");
        let read = |side: &str| {
            let bytes = fs::read(case.with_file_name(format!("{name}.{side}.desc"))).unwrap();
            // Reading nothing is an error, so that nothing is never taken for a contract.
            match bytes.is_empty() {
                true => Schema::default(),
                false => schema(bytes),
            }
        };
        assert_eq!(found(&read("old"), &read("new")), told(&case), "{name}");
        judged += 1;
    }
    assert!(judged > 0);
}

/// Every published set with its name; none, with a note, where they are not at hand.
pub(crate) fn sets() -> Vec<(String, Bytes)> {
    let Some(contracts) = contracts() else {
        return Vec::new();
    };
    let files = files(&contracts, ".desc");
    assert!(!files.is_empty(), "no *.desc in {}", contracts.display());
    let read = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap();
        (stem(path, ".desc").to_owned(), Bytes::from(bytes))
    };
    files.iter().map(read).collect()
}

fn contracts() -> Option<PathBuf> {
    let Some(data) = env::var_os("CHRONICLE_TEST_DATA") else {
        // Not `eprintln!`, which the test harness swallows when a test passes.
        let note = "SKIPPED: set CHRONICLE_TEST_DATA to the directory with contracts/*.desc";
        writeln!(std::io::stderr().lock(), "{note}").unwrap();
        return None;
    };
    Some(Path::new(&data).join("contracts"))
}

fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("CHRONICLE_TEST_DATA has contracts/");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().ends_with(ending))
        .collect();
    files.sort();
    files
}

fn stem<'a>(path: &'a Path, ending: &str) -> &'a str {
    let name = path.file_name().unwrap().to_str().unwrap();
    name.strip_suffix(ending).unwrap()
}

fn schema(bytes: Vec<u8>) -> Schema {
    Schema::from_descriptor_set(bytes).unwrap()
}

#[derive(Debug, PartialEq, Deserialize)]
struct Finding {
    kind: String,
    path: String,
}

fn told(case: &Path) -> Vec<Finding> {
    serde_json::from_slice(&fs::read(case).unwrap()).unwrap()
}

fn found(expected: &Schema, actual: &Schema) -> Vec<Finding> {
    let findings = diff(expected, actual).into_iter();
    findings
        .map(|finding| Finding {
            kind: finding.kind.name().to_owned(),
            path: finding.path,
        })
        .collect()
}
