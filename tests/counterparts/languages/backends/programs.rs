//! Programs behind the gateway, each with the server of its language.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::programs::running::{Running, go, source};
use crate::support::free_address;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Php,
    Wsgi,
    Node,
    Go,
}

pub const ALL: [Language; 4] = [Language::Php, Language::Wsgi, Language::Node, Language::Go];

/// A running program. Dropping it ends the program.
pub struct Program {
    pub address: SocketAddr,
    _process: Running,
}

impl Program {
    pub fn start(language: Language) -> Self {
        let address = free_address();
        let at = PathBuf::from(address.to_string());
        let (program, arguments) = match language {
            Language::Php => (
                "php".into(),
                vec!["-S".into(), at, source("backends/origin.php")],
            ),
            Language::Wsgi => ("python3".into(), vec![source("backends/origin.py"), at]),
            Language::Node => ("node".into(), vec![source("backends/origin.js"), at]),
            Language::Go => (go("backends/origin.go"), vec![at]),
        };
        let mut command = Command::new(program);
        command.args(arguments).stderr(Stdio::null());
        let process = Running::listening(&mut command, address);
        Self {
            address,
            _process: process,
        }
    }
}
