//! Varnish on a port of its own.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::support::{eventually, free_address};

/// Debian installs it in a folder that is not in a plain user's PATH.
const PLACES: [&str; 2] = ["varnishd", "/usr/sbin/varnishd"];

/// Varnish with the rules that it has by default, and no time beyond the lifetime of an answer.
pub struct Varnish {
    pub address: SocketAddr,
    process: Child,
    _folder: TempDir,
}

impl Varnish {
    /// Starts it in front of `origin`. Answers without a lifetime have `ttl` seconds.
    pub fn start(origin: SocketAddr, ttl: u32) -> Self {
        let (address, folder) = (free_address(), TempDir::new().expect("a folder"));
        let process = spawn(|command| {
            command
                .arg("-F")
                .args(["-j", "none", "-s", "malloc,16m"])
                .args(["-a", &address.to_string(), "-b", &origin.to_string()])
                .arg("-n")
                .arg(folder.path().join("varnish"))
                .args(["-p", &format!("default_ttl={ttl}")])
                .args(["-p", "default_grace=0", "-p", "default_keep=0"])
                .args(["-p", "shortlived=0", "-p", "thread_pool_min=20"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
        });
        let mut varnish = Self {
            address,
            process,
            _folder: folder,
        };
        eventually("Varnish is ready", || {
            let ended = varnish.process.try_wait().expect("a child");
            assert_eq!(ended, None, "Varnish ended");
            TcpStream::connect(address).is_ok()
        });
        varnish
    }
}

impl Drop for Varnish {
    fn drop(&mut self) {
        // Its worker ends when it finds the pipe of this one closed.
        let _ended = self.process.kill();
        let _ended = self.process.wait();
    }
}

fn spawn(with: impl Fn(&mut Command)) -> Child {
    for program in PLACES {
        let mut command = Command::new(program);
        with(&mut command);
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            spawned => return spawned.expect("Varnish starts"),
        }
    }
    panic!(
        "these tests compare drip with Varnish, which is not installed: tests/run.sh installs what the tests need"
    );
}
