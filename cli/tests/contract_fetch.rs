//! `chronicle contract fetch`: what it writes, and what it leaves alone.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests of a program with files"
)]

#[path = "../../core/tests/contract/older_server.rs"]
mod older_server;

use chronicle_connection_tokio::{Code, Contract, Schema, diff};
use chronicle_reference_server::{
    Answer, Server, ServerOptions,
    model::{Age, Authentication, ModelConfig},
    paths,
};
use prost::Message as _;
use std::{
    collections::BTreeMap,
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};
use tokio::runtime::Runtime;

#[test]
fn the_contract_of_a_server_is_written_to_be_committed() {
    let world = World::new("committed", |_| {});
    assert_eq!(
        world.fetch(),
        (
            0,
            format!(
                "version 18.5.0, protocol version 18.5.0: 5 files in {}, 5 changed, 0 removed\n",
                world.out()
            )
        )
    );
    let files = world.files();
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "Cratis.Chronicle.Contracts.Clients.proto",
            "acme.proto",
            "chronicle.desc",
            "chronicle.version",
            "protobuf-net/bcl.proto",
        ]
    );
    assert_eq!(
        String::from_utf8_lossy(&files["acme.proto"]),
        "\
// Contract of a Chronicle server, version 18.5.0, protocol version 18.5.0; written by chronicle contract fetch. Do not edit.

syntax = \"proto3\";

package acme;

import \"protobuf-net/bcl.proto\";

service S {
  rpc M(.acme.M) returns (stream .acme.M);
}

message M {
  .bcl.Guid id = 1;
  .acme.State state = 2;
}

enum Phase {
  PHASE_None = 0;
  Late = 1;
}

enum State {
  STATE_None = 0;
  Done = 1;
}
"
    );
    assert_eq!(files["chronicle.version"], b"18.5.0\n");
    let contract =
        Contract::from_descriptor_set(files["chronicle.desc"].clone(), "18.5.0").unwrap();
    let told = Schema::from_source_text(&world.text()).unwrap();
    assert_eq!(diff(contract.schema(), &told), []);
    assert_eq!(diff(&told, contract.schema()), []);

    let (code, out) = world.fetch();
    assert_eq!(code, 0);
    assert!(out.ends_with("0 changed, 0 removed\n"), "{out}");
    assert_eq!(world.files(), files);
}

#[test]
fn the_text_of_published_contracts_is_fetched_as_what_was_published() {
    let Some(data) = env::var_os("CHRONICLE_TEST_DATA") else {
        // Not `eprintln!`, which the test harness swallows when a test passes.
        let note = "SKIPPED: set CHRONICLE_TEST_DATA to the directory with contracts/*.desc";
        writeln!(std::io::stderr().lock(), "{note}").unwrap();
        return;
    };
    let world = World::new("published", |_| {});
    for name in ["15.7.1", "16.34.0", "17-z"] {
        let path = Path::new(&data).join(format!("contracts/chronicle-{name}.desc"));
        let bytes = fs::read(path).unwrap();
        let set = prost_types::FileDescriptorSet::decode(&*bytes).unwrap();
        world.set(|model| model.schema = older_server::print(&set, "\r\n"));
        let (code, out) = world.fetch();
        assert_eq!(code, 0, "{name} {out}");
        let fetched = world.files()["chronicle.desc"].clone();
        let fetched = Schema::from_descriptor_set(fetched).unwrap();
        assert!(
            fetched == Schema::from_descriptor_set(bytes).unwrap(),
            "{name}"
        );
    }
}

#[test]
fn a_package_that_is_gone_takes_its_file_with_it_and_no_other() {
    let world = World::new("gone", |_| {});
    assert_eq!(world.fetch().0, 0);
    world.write("own.proto", "syntax = \"proto3\";");
    world.write("README.md", "hello");
    world.set(|model| {
        model.schema = ModelConfig::default().schema;
        model.version = "18.6.0".to_owned();
        model.protocol_version = "18.5.1".to_owned();
    });
    let (code, out) = world.fetch();
    assert_eq!(code, 0);
    assert!(
        out.contains("version 18.6.0, protocol version 18.5.1: 3 files"),
        "{out}"
    );
    assert!(out.ends_with("3 changed, 2 removed\n"), "{out}");
    let files = world.files();
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "Cratis.Chronicle.Contracts.Clients.proto",
            "README.md",
            "chronicle.desc",
            "chronicle.version",
            "own.proto",
        ]
    );
    assert_eq!(files["chronicle.version"], b"18.5.1\n");
}

#[test]
fn files_that_no_fetch_wrote_are_never_touched() {
    for name in [
        "chronicle.desc",
        "chronicle.version",
        "acme.proto",
        "protobuf-net/bcl.proto",
    ] {
        let world = World::new("foreign", |_| {});
        world.write(name, "mine");
        let before = world.files();
        let (code, complaint) = world.fetch();
        assert_eq!(code, 2);
        let path = Path::new(&world.out()).join(name);
        assert_eq!(
            complaint,
            format!(
                "chronicle: {} is there, and no fetch wrote it; move it away, or give another --out\n",
                path.display()
            )
        );
        assert_eq!(world.files(), before);
    }
}

#[test]
fn an_older_server_is_of_the_version_that_it_tells_and_nonsense_is_not_known() {
    let world = World::new("versions", |model| {
        model.age = Age::WithoutCheck;
        model.version = "16.34.0".to_owned();
    });
    let (code, out) = world.fetch();
    assert_eq!(code, 0);
    assert!(
        out.starts_with("version 16.34.0, protocol version 16.34.0: "),
        "{out}"
    );
    assert_eq!(world.files()["chronicle.version"], b"16.34.0\n");

    for nonsense in ["1.0\n}\nmessage Evil {}", "", "1 0", &"1".repeat(200)] {
        world.set(|model| {
            model.age = Age::WithoutCheck;
            model.version = nonsense.to_owned();
        });
        let (code, out) = world.fetch();
        assert_eq!(code, 0, "{nonsense:?}");
        assert!(
            out.starts_with("version unknown, protocol version unknown: "),
            "{out}"
        );
    }
}

#[test]
fn credentials_are_used_and_what_cannot_be_fetched_leaves_nothing_behind() {
    let world = World::new("credentials", |model| {
        model.authentication = Some(Authentication::default());
    });
    let (code, complaint) = world.fetch();
    assert_eq!(code, 2, "{complaint}");
    let with = world.string("chronicle-dev-client:chronicle-dev-secret@");
    assert_eq!(world.fetch_from(&with).0, 0);

    let silent = World::new("silent", |_| {});
    silent.server.faults().set(|faults| {
        let fault = Answer::Grpc(Code::Unavailable, "going down".to_owned());
        faults.on(paths::GET_VERSION_INFO).answer = Some(fault);
    });
    let (code, complaint) = silent.fetch();
    assert_eq!(code, 2);
    assert!(
        complaint.contains("did not tell its version"),
        "{complaint}"
    );

    let broken = World::new("broken", |model| model.schema = "message {".to_owned());
    let (code, complaint) = broken.fetch();
    assert_eq!(code, 2);
    assert!(complaint.contains("line 1"), "{complaint}");
    let unwritable = World::new("unwritable", |model| {
        model.schema += "message Fox { Hen hen = 1; }";
    });
    let (code, complaint) = unwritable.fetch();
    assert_eq!(code, 2);
    assert!(
        complaint.contains("Fox.hen is of the type \"Hen\""),
        "{complaint}"
    );
    for (string, reason) in [
        ("chronicle://", "host"),
        (
            "chronicle://localhost?skipCompatibilityCheck=false",
            "take skipCompatibilityCheck=false out",
        ),
    ] {
        let (code, complaint) = broken.fetch_from(string);
        assert_eq!(code, 2, "{complaint}");
        assert!(complaint.contains(reason), "{complaint}");
    }
    for world in [silent, broken, unwritable] {
        assert!(!Path::new(&world.out()).exists());
    }
}

/// What the README says is how the files of the example came about. After a change to what is served,
/// `CHRONICLE_REGENERATE=1` writes them anew.
#[test]
fn the_recipe_fetches_the_files_of_the_example_as_they_are_committed() {
    const COMMAND: &str = "cargo run -p chronicle-connection-cli -- ";
    const EXAMPLE: &str = "adapter-tokio/examples/typed-calls";
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let mut lines = readme.lines();
    let fetch = lines.find_map(|line| line.strip_prefix(&format!("{COMMAND}contract fetch")));

    let contract = root.join(EXAMPLE).join("served.txt");
    let contract = fs::read(contract).unwrap();
    let world = World::new("example", |model| {
        *model = ModelConfig::serving(&contract, "18.5.0").unwrap();
    });
    let out = format!("{EXAMPLE}/contract");
    let fetch = fetch
        .unwrap()
        .replace("127.0.0.1:35100", &world.server.endpoint());
    assert!(fetch.contains(&out), "{fetch}");
    let regenerate = env::var_os("CHRONICLE_REGENERATE").is_some();
    let fetch = if regenerate {
        fetch
    } else {
        fetch.replace(&out, &world.out())
    };
    let mut shell = Command::new("sh");
    let script = format!("\"$0\" contract fetch{fetch}");
    shell
        .args(["-c", &script, env!("CARGO_BIN_EXE_chronicle")])
        .current_dir(&root);
    let output = shell.output().unwrap();
    let told = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{script}: {told}");
    if !regenerate {
        assert_eq!(world.files(), files_in(&root.join(&out)));
    }
}

/// A server with the contract of a small application, and a directory.
struct World {
    out: PathBuf,
    server: Server,
    _runtime: Runtime,
}

impl World {
    fn new(test: &str, change: impl FnOnce(&mut ModelConfig)) -> Self {
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(Server::start(ServerOptions::default()));
        let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join("fetch")
            .join(test);
        let _ = fs::remove_dir_all(&out);
        let world = Self {
            out,
            server: server.unwrap(),
            _runtime: runtime,
        };
        world.set(|model| {
            model.schema += APPLICATION;
            change(model);
        });
        world
    }

    fn set(&self, change: impl FnOnce(&mut ModelConfig)) {
        self.server.faults().set(|faults| change(&mut faults.model));
    }

    fn text(&self) -> String {
        ModelConfig::default().schema + APPLICATION
    }

    fn out(&self) -> String {
        self.out.to_str().unwrap().to_owned()
    }

    fn string(&self, credentials: &str) -> String {
        let endpoint = self.server.endpoint();
        format!("chronicle://{credentials}{endpoint}/?skipTlsValidation=true")
    }

    /// The exit code, and what was printed to either stream.
    fn fetch(&self) -> (i32, String) {
        self.fetch_from(&self.string(""))
    }

    fn fetch_from(&self, string: &str) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chronicle"));
        command
            .args(["contract", "fetch", string, "--out"])
            .arg(&self.out);
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code().unwrap(),
            String::from_utf8(text).unwrap(),
        )
    }

    fn write(&self, name: &str, content: &str) {
        let path = self.out.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        files_in(&self.out)
    }
}

fn files_in(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap();
                files.insert(name.replace('\\', "/"), fs::read(&path).unwrap());
            }
        }
    }
    files
}

const APPLICATION: &str = "
syntax = \"proto3\";
package acme;
import \"protobuf-net/bcl.proto\";

message M {
   .bcl.Guid id = 1;
   State state = 2;
}
enum Phase {
   None = 0;
   Late = 1;
}
enum State {
   None = 0;
   Done = 1;
}
service S {
   rpc M (M) returns (stream M);
}
";
