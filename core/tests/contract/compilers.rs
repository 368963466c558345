//! The compilers that written .proto files are for.

use chronicle_connection::{ProtoFile, Schema};
use chronicle_connection_proto::IMPORTS_DESCRIPTOR_SET;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use protox::file::{File, FileResolver, GoogleFileResolver};
use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

/// What protox makes of the files, linked.
pub(crate) fn protox(files: &[ProtoFile]) -> Result<Vec<u8>, String> {
    let mut compiler = protox::Compiler::with_file_resolver(Files(files.to_vec()));
    let names = files.iter().map(|file| &file.name);
    compiler
        .include_imports(true)
        .open_files(names)
        .map_err(|error| format!("{error:?}"))?;
    Ok(compiler.encode_file_descriptor_set())
}

/// What protox makes of the files, read.
pub(crate) fn compiled(files: &[ProtoFile]) -> Schema {
    let set = protox(files).unwrap_or_else(|error| panic!("{error}\n{files:#?}"));
    Schema::from_descriptor_set(set).unwrap()
}

/// What protoc makes of the files; `None`, with a note, where it is not installed.
pub(crate) fn protoc(name: &str, files: &[ProtoFile]) -> Option<Schema> {
    if Command::new("protoc").arg("--version").output().is_err() {
        assert!(env::var_os("CI").is_none(), "CI needs protoc");
        let note = "SKIPPED: install protoc (apt-get install protobuf-compiler)";
        writeln!(std::io::stderr().lock(), "{note}").unwrap();
        return None;
    }
    let directory = directory(&format!("protoc-{name}"));
    for file in files {
        write(&directory.join(&file.name), &file.content);
    }
    // Debian has these in another package.
    let mut google = FileDescriptorSet::decode(IMPORTS_DESCRIPTOR_SET).unwrap();
    google
        .file
        .retain(|file| file.package() == "google.protobuf");
    let imports = directory.join("google.desc");
    fs::write(&imports, google.encode_to_vec()).unwrap();
    let set = directory.join("set");
    let output = Command::new("protoc")
        .args(["--include_imports", "-I"])
        .arg(&directory)
        .arg(format!("--descriptor_set_in={}", imports.display()))
        .arg(format!("--descriptor_set_out={}", set.display()))
        .args(files.iter().map(|file| &file.name))
        .output()
        .unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{name}: {complaints}");
    assert_eq!(complaints, "", "{name}");
    Some(Schema::from_descriptor_set(fs::read(set).unwrap()).unwrap())
}

/// The names of the Rust files that tonic-prost-build writes for the files, as an application's
/// build script would call it; without the underscores that it puts between words.
pub(crate) fn tonic(name: &str, files: &[ProtoFile]) -> Vec<String> {
    let directory = directory(&format!("tonic-{name}"));
    let set = FileDescriptorSet::decode(&*protox(files).unwrap()).unwrap();
    tonic_prost_build::configure()
        .build_transport(false)
        .out_dir(&directory)
        .compile_fds(set)
        .unwrap();
    let entries = fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.map(|name| name.replace('_', ""));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Files that are nowhere else, and those of Google.
struct Files(Vec<ProtoFile>);

impl FileResolver for Files {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match self.0.iter().find(|file| file.name == name) {
            Some(file) => File::from_source(name, &file.content),
            None => GoogleFileResolver::new().open_file(name),
        }
    }
}

/// An empty directory.
fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("written")
        .join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}
