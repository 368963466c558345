//! The committed code and descriptor set are what `protos/` says, here and in the reference server.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test that reads and writes files"
)]

use prost::Message as _;
use std::{env, fs, path::Path};

#[test]
fn generated_files_are_what_the_protos_say() {
    let out = tempdir();
    for name in ["clients", "host"] {
        tonic_prost_build::configure()
            .build_client(false)
            .build_server(true)
            .server_mod_attribute(".", "#[cfg(feature = \"server\")]")
            .build_transport(false)
            .out_dir(&out)
            .compile_fds(compile("protos", &[&format!("{name}.proto")]))
            .unwrap();
        let file = format!("cratis.chronicle.contracts.{name}.rs");
        let code = fs::read(Path::new(&out).join(file)).unwrap();
        check(&format!("src/generated/{name}.rs"), &code);
    }
    let session = compile("protos", &["session.proto"]).encode_to_vec();
    check("src/generated/session.desc", &session);
    let imports = compile("protos", &IMPORTS).encode_to_vec();
    check("src/generated/imports.desc", &imports);
}

#[test]
fn generated_files_of_the_reference_server_are_what_its_proto_says() {
    let out = tempdir();
    tonic_prost_build::configure()
        .build_transport(false)
        .out_dir(&out)
        .compile_fds(compile("../reference/protos", &["echo.proto"]))
        .unwrap();
    let code = fs::read(Path::new(&out).join("chronicle.reference.rs")).unwrap();
    check("../reference/src/generated/echo.rs", &code);
}

fn compile(protos: &str, files: &[&str]) -> prost_types::FileDescriptorSet {
    let protos = Path::new(env!("CARGO_MANIFEST_DIR")).join(protos);
    let mut compiler = protox::Compiler::new([protos]).unwrap();
    compiler
        .include_imports(true)
        .include_source_info(false)
        .open_files(files)
        .unwrap();
    prost_types::FileDescriptorSet::decode(&*compiler.encode_file_descriptor_set()).unwrap()
}

fn check(name: &str, fresh: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if env::var_os("CHRONICLE_REGENERATE").is_some() {
        fs::write(&path, fresh).unwrap();
    }
    assert!(
        fs::read(&path).unwrap_or_default() == fresh,
        "{name} is not what protos/ says; run CHRONICLE_REGENERATE=1 cargo test -p chronicle-connection-proto"
    );
}

fn tempdir() -> String {
    let dir = format!("{}/generated", env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(&dir).unwrap();
    dir
}

const IMPORTS: [&str; 8] = [
    "bcl.proto",
    "google/protobuf/any.proto",
    "google/protobuf/duration.proto",
    "google/protobuf/empty.proto",
    "google/protobuf/field_mask.proto",
    "google/protobuf/struct.proto",
    "google/protobuf/timestamp.proto",
    "google/protobuf/wrappers.proto",
];
