//! Programs behind the gateway, each with the server that its language has.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::support::{eventually, free_address};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Php,
    Wsgi,
    Node,
    Go,
}

pub const ALL: [Language; 4] = [Language::Php, Language::Wsgi, Language::Node, Language::Go];

/// A running program. Dropped, it ends.
pub struct Program {
    pub address: SocketAddr,
    process: Child,
}

fn source(name: &str) -> PathBuf {
    Path::new("tests/counterparts/languages/backends").join(name)
}

/// The compiled program of Go, made once.
fn go() -> PathBuf {
    static MAKING: Mutex<bool> = Mutex::new(false);
    let mut is_made = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join("backend-origin-go");
    if !*is_made {
        let mut command = Command::new("go");
        command.env("GOCACHE", folder.join("go"));
        command.args(["build", "-o"]).arg(&program);
        let output = command.arg(source("origin.go")).output().expect("go");
        assert!(output.status.success(), "{output:?}");
        *is_made = true;
    }
    program
}

impl Program {
    pub fn start(language: Language) -> Self {
        let address = free_address();
        let at = address.to_string();
        let mut command = match language {
            Language::Php => {
                let mut command = Command::new("php");
                command.args(["-S", &at]).arg(source("origin.php"));
                command
            }
            Language::Wsgi => {
                let mut command = Command::new("python3");
                command.arg(source("origin.py")).arg(&at);
                command
            }
            Language::Node => {
                let mut command = Command::new("node");
                command.arg(source("origin.js")).arg(&at);
                command
            }
            Language::Go => {
                let mut command = Command::new(go());
                command.arg(&at);
                command
            }
        };
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn();
        let process = process.unwrap_or_else(|error| {
            panic!("{command:?}: {error}; tests/run.sh installs what the tests need")
        });
        let mut program = Self { address, process };
        eventually("the program listens", || {
            let ended = program.process.try_wait().expect("a child");
            assert_eq!(ended, None, "{language:?} ended");
            TcpStream::connect(address).is_ok()
        });
        program
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.process.kill();
        let _ended = self.process.wait();
    }
}
