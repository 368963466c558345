//! A server that none of our code is in: gRPC C-core in Python, behind nginx.

use super::name_server::free_port;
use crate::matrix;
use serde_json::Value;
use std::{
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    thread::sleep,
    time::{Duration, Instant},
};

/// What is different from the defaults of nginx and of `tests/foreign/server.py`.
#[derive(Default)]
pub(crate) struct Plan {
    /// Directives for the server of nginx.
    pub(crate) server: &'static str,
    /// Directives for what goes to gRPC.
    pub(crate) grpc: &'static str,
    /// Settings of the program, as JSON.
    pub(crate) settings: &'static str,
    /// Options of C-core, as JSON.
    pub(crate) options: &'static str,
}

/// Two processes on loopback, which end with this value.
pub(crate) struct House {
    plan: Plan,
    directory: PathBuf,
    ports: Ports,
    backend: Option<Backend>,
    proxy: Option<Child>,
}

/// Where they listen; a restart changes nothing about it.
struct Ports {
    /// Of nginx, TLS.
    front: u16,
    /// Of C-core, behind nginx.
    core: u16,
    /// Of C-core, TLS.
    secure: u16,
    /// Of the endpoints, behind nginx.
    http: u16,
}

struct Backend {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl House {
    /// Whether houses can be built here; where not, says aloud what is skipped.
    pub(crate) fn is_possible() -> bool {
        static MISSING: LazyLock<Option<String>> = LazyLock::new(missing);
        match &*MISSING {
            None => true,
            Some(text) => {
                matrix::skip(text);
                false
            }
        }
    }

    pub(crate) fn build(plan: Plan) -> Self {
        static BUILT: AtomicU32 = AtomicU32::new(0);
        let number = BUILT.fetch_add(1, Ordering::Relaxed);
        let name = format!("chronicle-house-{}-{number}", std::process::id());
        let directory = env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(names).unwrap();
        fs::write(directory.join("certificate.pem"), cert.pem()).unwrap();
        fs::write(directory.join("key.pem"), signing_key.serialize_pem()).unwrap();
        let [front, core, secure, http] = [(); 4].map(|()| free_port());
        let mut house = Self {
            plan,
            directory,
            ports: Ports {
                front,
                core,
                secure,
                http,
            },
            backend: None,
            proxy: None,
        };
        house.write_configuration();
        house.start_backend();
        house.start_proxy();
        house
    }

    /// Where clients connect to.
    pub(crate) fn endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.ports.front)
    }

    /// C-core itself, without nginx: it has no endpoints.
    pub(crate) fn core_endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.ports.secure)
    }

    /// Changes settings of the program, given as JSON, and tells what it counted.
    pub(crate) fn set(&mut self, settings: &str) -> Stats {
        let backend = self.backend.as_mut().expect("the program was killed");
        writeln!(backend.orders, "{settings}").unwrap();
        Stats(backend.line())
    }

    pub(crate) fn stats(&mut self) -> Stats {
        self.set("{}")
    }

    pub(crate) fn start_backend(&mut self) {
        let Ports {
            core, secure, http, ..
        } = self.ports;
        let or_none = |json: &'static str| if json.is_empty() { "{}" } else { json };
        let mut process = Command::new(python())
            .arg(source("server.py"))
            .args(["--core", &core.to_string()])
            .args(["--secure", &secure.to_string()])
            .args(["--http", &http.to_string()])
            .args(["--settings", or_none(self.plan.settings)])
            .args(["--options", or_none(self.plan.options)])
            .args(["--certificate", "certificate.pem", "--key", "key.pem"])
            .current_dir(&self.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(self.log())
            .spawn()
            .unwrap();
        let mut backend = Backend {
            orders: process.stdin.take().unwrap(),
            answers: BufReader::new(process.stdout.take().unwrap()),
            process,
        };
        backend.line();
        self.backend = Some(backend);
    }

    pub(crate) fn kill_backend(&mut self) {
        let mut backend = self.backend.take().expect("the program was killed");
        backend.process.kill().unwrap();
        backend.process.wait().unwrap();
    }

    /// Makes the program stand still, or go on.
    pub(crate) fn freeze_backend(&self, is_frozen: bool) {
        let backend = self.backend.as_ref().expect("the program was killed");
        signal(backend.process.id().to_string(), is_frozen);
    }

    pub(crate) fn start_proxy(&mut self) {
        // The end of this process, however it comes, ends the shell's input, and nginx with it.
        let script =
            "nginx -c \"$PWD/nginx.conf\" -e stderr -g 'daemon off;' & read _; kill $!; wait";
        let process = Command::new("sh")
            .args(["-c", script])
            .current_dir(&self.directory)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(self.log())
            .spawn()
            .unwrap();
        self.proxy = Some(process);
        self.until_front_is(true);
    }

    /// Kills nginx with all of its workers.
    pub(crate) fn kill_proxy(&mut self) {
        self.end_proxy();
        // That was the shell; the others end when the system gets to it.
        self.until_front_is(false);
    }

    fn end_proxy(&mut self) {
        let mut proxy = self.proxy.take().expect("nginx was killed");
        kill([
            "-KILL".to_owned(),
            "--".to_owned(),
            format!("-{}", proxy.id()),
        ]);
        proxy.wait().unwrap();
    }

    fn until_front_is(&self, open: bool) {
        let begun = Instant::now();
        while TcpStream::connect(self.endpoint()).is_ok() != open {
            let time = begun.elapsed();
            assert!(time < Duration::from_secs(20), "nginx: {}", self.said());
            sleep(Duration::from_millis(5));
        }
    }

    /// Makes nginx stand still, or go on.
    pub(crate) fn freeze_proxy(&self, is_frozen: bool) {
        let proxy = self.proxy.as_ref().expect("nginx was killed");
        signal(format!("-{}", proxy.id()), is_frozen);
    }

    /// Makes nginx offer HTTP/1.1 alone from its next start on, and starts it anew.
    pub(crate) fn without_http2(&mut self) {
        self.kill_proxy();
        let file = self.directory.join("nginx.conf");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace(" ssl http2;", " ssl;")).unwrap();
        self.start_proxy();
    }

    /// Makes nginx read its configuration anew: new workers take over, old ones finish.
    pub(crate) fn reload_proxy(&self) {
        let pid = fs::read_to_string(self.directory.join("nginx.pid")).unwrap();
        kill(["-HUP".to_owned(), pid.trim().to_owned()]);
    }

    /// The requests that nginx has finished: protocol, method, path and status each.
    pub(crate) fn requests(&self) -> Vec<String> {
        let log = fs::read_to_string(self.directory.join("access.log"));
        log.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn write_configuration(&self) {
        let template = fs::read_to_string(source("nginx.conf")).unwrap();
        let text = template
            .replace("@directory@", &self.directory.display().to_string())
            .replace("@port@", &self.ports.front.to_string())
            .replace("@core@", &self.ports.core.to_string())
            .replace("@http@", &self.ports.http.to_string())
            .replace("@server@", self.plan.server)
            .replace("@grpc@", self.plan.grpc);
        fs::write(self.directory.join("nginx.conf"), text).unwrap();
    }

    fn log(&self) -> fs::File {
        let file = self.directory.join("log");
        let mut options = fs::OpenOptions::new();
        options.create(true).append(true).open(file).unwrap()
    }

    fn said(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        if self.proxy.is_some() {
            self.end_proxy();
        }
        if self.backend.is_some() {
            self.kill_backend();
        }
        if std::thread::panicking() {
            eprintln!("{}\n{}", self.said(), self.requests().join("\n"));
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Backend {
    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }
}

/// What the program counted.
#[derive(Debug)]
pub(crate) struct Stats(Value);

impl Stats {
    /// The ids of its clients.
    pub(crate) fn clients(&self) -> Vec<&str> {
        let clients = self.0["clients"].as_array().unwrap();
        clients.iter().map(|id| id.as_str().unwrap()).collect()
    }

    /// How often a method was called, by its path, or an endpoint, by its last word.
    pub(crate) fn requests(&self, path: &str) -> u64 {
        self.0["calls"][path].as_u64().unwrap_or_default()
    }

    /// How many payloads reached the application more than once.
    pub(crate) fn twice(&self) -> u64 {
        self.0["twice"].as_u64().unwrap()
    }
}

fn missing() -> Option<String> {
    let works = |command: &mut Command| {
        let output = command.output();
        output.is_ok_and(|output| output.status.success())
    };
    if !works(Command::new("nginx").arg("-v")) {
        return Some("nginx is not installed (apt-get install nginx)".to_owned());
    }
    let python = python();
    (!works(Command::new(&python).args(["-c", "import grpc"]))).then(|| {
        format!(
            "{} has no grpcio (pip install -r tests/foreign/requirements.txt; CHRONICLE_PYTHON \
             names the interpreter that has it)",
            python.display()
        )
    })
}

fn python() -> PathBuf {
    env::var_os("CHRONICLE_PYTHON").map_or_else(|| "python3".into(), PathBuf::from)
}

fn source(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("foreign")
        .join(file)
}

fn signal(process: String, is_frozen: bool) {
    let signal = if is_frozen { "-STOP" } else { "-CONT" };
    kill([signal.to_owned(), "--".to_owned(), process]);
}

fn kill<const N: usize>(arguments: [String; N]) {
    let status = Command::new("kill").args(arguments).status().unwrap();
    assert!(status.success());
}
