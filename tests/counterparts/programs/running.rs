//! Programs that run until a test drops them, and programs that must be compiled.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::eventually;

/// A program. Dropping it kills the program.
#[derive(Debug)]
pub struct Running(Child);

/// Returns a command that also finds Debian's folders outside a plain user's PATH.
pub fn command(program: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(program);
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command
}

impl Running {
    /// Starts a program without input. `tests/run.sh` installs the program.
    pub fn start(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::null()).spawn();
        Self(child.unwrap_or_else(|error| {
            panic!("{command:?}: {error}; tests/run.sh installs what the tests need")
        }))
    }

    /// Starts a server, and waits until it listens.
    pub fn listening(command: &mut Command, at: SocketAddr) -> Self {
        let mut server = Self::start(command.stdout(Stdio::null()));
        eventually("the server listens", || {
            let ended = server.0.try_wait().expect("a child");
            assert_eq!(ended, None, "{command:?} ended");
            TcpStream::connect(at).is_ok()
        });
        server
    }

    /// Starts a program that prints a line once it is ready. Also returns that and later lines.
    pub fn printing(command: &mut Command) -> (Self, String, impl Iterator<Item = String> + use<>) {
        let mut program = Self::start(command.stdout(Stdio::piped()));
        let lines = BufReader::new(program.0.stdout.take().expect("a pipe")).lines();
        let mut lines = lines.map_while(Result::ok);
        let first = lines.next();
        let first = first.unwrap_or_else(|| panic!("{command:?} prints nothing"));
        (program, first, lines)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("a process");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The program may have ended by itself.
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// Makes something once in a folder beside the build. Returns its path.
fn once(name: &str, make: impl FnOnce(&Path) -> Command) -> PathBuf {
    static MADE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let mut built = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if !built.contains(&path) {
        let output = make(&path).output().expect("a compiler");
        assert!(output.status.success(), "{output:?}");
        built.push(path.clone());
    }
    path
}

/// Returns the name of a source in `tests/counterparts/languages`, without slashes.
fn flat(source: &str) -> String {
    source.replace(['/', '.'], "-")
}

/// Returns the path of a file in `tests/counterparts/languages`.
pub fn source(name: &str) -> PathBuf {
    Path::new("tests/counterparts/languages").join(name)
}

/// Returns a compiled program of Go.
pub fn go(name: &str) -> PathBuf {
    once(&flat(name), |program| {
        let mut build = Command::new("go");
        build.env("GOCACHE", program.with_file_name("go"));
        build.args(["build", "-o"]).arg(program).arg(source(name));
        build
    })
}

/// Returns the folder of a compiled program of Java.
pub fn java(name: &str) -> PathBuf {
    once(&flat(name), |folder| {
        let mut compile = Command::new("javac");
        compile.arg("-d").arg(folder).arg(source(name));
        compile
    })
}
