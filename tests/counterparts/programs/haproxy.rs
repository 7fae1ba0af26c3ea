use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::support::{eventually, free_address};

/// Debian installs it in a folder that is not in a plain user's PATH.
const PLACES: [&str; 3] = ["haproxy", "/usr/sbin/haproxy", "/sbin/haproxy"];

/// A real haproxy on a port of its own.
#[derive(Debug)]
pub struct Haproxy {
    pub address: SocketAddr,
    _folder: TempDir,
    process: Child,
}

impl Haproxy {
    /// Starts haproxy in front of `origin`; `more` are further lines of its only section.
    pub fn before(origin: SocketAddr, more: &str) -> Self {
        let address = free_address();
        Self::start(address, &text(origin, address, more))
    }

    /// Starts haproxy in front of `server`, to which it passes connections as they are. `options` are those of the
    /// line that names the server, and may go on with further lines.
    pub fn relaying(server: SocketAddr, options: &str) -> Self {
        let address = free_address();
        let text = format!(
            "
defaults
    mode tcp
    timeout connect 1s
    timeout client 10s
    timeout server 10s
listen front
    bind {address}
    server one {server} {options}
"
        );
        Self::start(address, &text)
    }

    fn start(address: SocketAddr, text: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("haproxy.cfg");
        fs::write(&file, text).expect("a file");
        let mut process = spawn(&file);
        eventually("haproxy is ready", || {
            let ended = process.try_wait().expect("a child");
            assert_eq!(ended, None, "haproxy ended");
            TcpStream::connect(address).is_ok()
        });
        Self {
            address,
            _folder: folder,
            process,
        }
    }
}

impl Drop for Haproxy {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.process.kill();
        let _ended = self.process.wait();
    }
}

fn spawn(file: &std::path::Path) -> Child {
    for program in PLACES {
        let mut command = Command::new(program);
        command.arg("-q").arg("-db").arg("-f").arg(file);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            spawned => return spawned.expect("haproxy starts"),
        }
    }
    panic!(
        "these tests ask a real haproxy too, which is not installed: tests/run.sh installs what the tests need"
    );
}

fn text(origin: SocketAddr, address: SocketAddr, more: &str) -> String {
    format!(
        "
global
    maxconn 1000
defaults
    mode http
    option abortonclose
    retries 1
    timeout connect 1s
    timeout client 10s
    timeout server 10s
    timeout http-keep-alive 10s
listen front
    bind {address}
    http-reuse never
{more}
    server one {origin}
"
    )
}
