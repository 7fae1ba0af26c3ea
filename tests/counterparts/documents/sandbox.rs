//! A folder in which the commands of the pages run unchanged, except for the ports.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::support::free_address;
use crate::support::page::root;

/// Ports in the pages.
const PORTS: [u16; 6] = [8080, 8081, 9000, 9090, 9091, 6379];

/// A `cargo run` that runs the program already built.
const CARGO: &str = r#"#!/bin/sh
[ "$1" = run ] || exit 1
shift
[ "$1" != -- ] || shift
exec drip "$@"
"#;

pub struct Sandbox {
    folder: TempDir,
    /// Replacement for each of [`PORTS`].
    ports: [u16; PORTS.len()],
}

impl Sandbox {
    pub fn new() -> Self {
        let sandbox = Self {
            folder: TempDir::new().expect("a folder"),
            ports: PORTS.map(|_| free_address().port()),
        };
        let program = Path::new(env!("CARGO_BIN_EXE_drip"));
        for program_path in ["bin/drip", "target/release/drip"] {
            let program_path = sandbox.path().join(program_path);
            fs::create_dir_all(program_path.parent().expect("a folder")).expect("a folder");
            symlink(program, program_path).expect("a link");
        }
        sandbox.program("cargo", CARGO);
        let settings = fs::read_to_string(root().join("gateway.toml")).expect("a file");
        sandbox.write("gateway.toml", &settings);
        sandbox
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the port that replaces a port of the pages.
    pub fn port(&self, port: u16) -> u16 {
        let pair = PORTS.iter().zip(self.ports).find(|pair| *pair.0 == port);
        pair.expect("a port of the pages").1
    }

    /// Returns `text` with the replaced ports.
    pub fn moved(&self, text: &str) -> String {
        let mut moved = String::new();
        let mut number = String::new();
        for c in text.chars().chain(['\n']) {
            if c.is_ascii_digit() {
                number.push(c);
                continue;
            }
            let port = number.parse().ok().filter(|port| PORTS.contains(port));
            moved += &port.map_or(number.clone(), |port| self.port(port).to_string());
            number.clear();
            moved.push(c);
        }
        moved.pop();
        moved
    }

    /// Writes a file with the replaced ports.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), self.moved(text)).expect("a file");
    }

    /// Adds the admin port to `gateway.toml` if it leaves it at its default.
    pub fn set_admin(&self) {
        let file = self.path().join("gateway.toml");
        let settings = fs::read_to_string(&file).expect("a file");
        if settings.lines().any(|line| line.starts_with("admin")) {
            return;
        }
        let admin = format!("[server]\nadmin = \"127.0.0.1:{}\"\n", self.port(9090));
        fs::write(file, settings.replacen("[server]\n", &admin, 1)).expect("a file");
    }

    /// Adds a program that commands find before others of the same name.
    pub fn program(&self, name: &str, script: &str) {
        let file = self.path().join("bin").join(name);
        fs::write(&file, script).expect("a file");
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("a program");
    }

    fn shell(&self, script: &str) -> Command {
        let mut shell = Command::new("bash");
        shell
            .args(["-c", &self.moved(script)])
            .current_dir(self.path());
        let path = std::env::var("PATH").unwrap_or_default();
        shell.env(
            "PATH",
            format!("{}:{path}", self.path().join("bin").display()),
        );
        // All its connections are local.
        shell
            .env("NO_PROXY", "*")
            .env_remove("DRIP_ADMIN_TOKEN")
            .env_remove("DRIP_ADMIN_READ_TOKEN");
        shell.stdin(Stdio::null());
        shell
    }

    /// Runs commands to their end.
    pub fn run(&self, script: &str) -> Output {
        self.shell(script).output().expect("a shell")
    }

    /// Starts commands that do not end. Their output goes to a file.
    pub fn start(&self, script: &str, output: &str) -> Running {
        let file = fs::File::create(self.path().join(output)).expect("a file");
        let mut shell = self.shell(&format!("{script}\nwait\n"));
        let complaints = self.path().join(format!("{output}.stderr"));
        let to = fs::File::create(&complaints).expect("a file");
        shell.stdout(file).stderr(to).process_group(0);
        Running {
            shell: shell.spawn().expect("a shell"),
            complaints,
        }
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }
}

/// A shell and all programs it has started. Dropping it ends them.
pub struct Running {
    shell: Child,
    complaints: PathBuf,
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = i32::try_from(self.shell.id()).ok().and_then(Pid::from_raw);
        // The shell may have ended by itself.
        let _ended = kill_process_group(group.expect("a group"), Signal::KILL);
        let _ended = self.shell.wait();
        if std::thread::panicking() {
            let complaints = fs::read_to_string(&self.complaints);
            eprintln!("{}", complaints.unwrap_or_default());
        }
    }
}
