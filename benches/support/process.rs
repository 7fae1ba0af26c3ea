//! Measured programs: started on their side of the machine, and ended together with this program.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use gateway::time::clock;
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use super::placement::Side;
use super::wait_until;

/// Folders with servers on Debian that a plain user's PATH does not contain.
const MORE_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The running programs, so that they end when this program is interrupted.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// A running program. It ends when this is dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// Time from its start until it accepted connections.
    pub ready_after: Duration,
}

impl Running {
    /// Starts the gateway on the `gateway.toml` of `folder`, on any processor.
    pub fn drip(folder: &Path, address: SocketAddr) -> io::Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_drip"));
        command
            .args(["run", "-c", "gateway.toml"])
            .current_dir(folder)
            .env_remove("DRIP_ADMIN_TOKEN")
            .env_remove("DRIP_ADMIN_READ_TOKEN");
        Self::start(command, Side::Anywhere, address, &folder.join("log"))
    }

    /// Starts `command` on `side`, and waits until it listens on `address`.
    ///
    /// Its output goes into the file `log`.
    pub fn start(
        mut command: Command,
        side: Side,
        address: SocketAddr,
        log: &Path,
    ) -> io::Result<Self> {
        let output = fs::File::create(log)?;
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        let began = clock::now();
        let child = side.run(|| command.spawn())?;
        with_running(|all| all.push(child.id()));
        let mut started = Self {
            child,
            ready_after: Duration::ZERO,
        };
        let ready = wait_until(Duration::from_secs(20), || {
            TcpStream::connect(address).is_ok() || started.has_ended()
        });
        if !ready || started.has_ended() {
            let output = fs::read_to_string(log).unwrap_or_default();
            return Err(io::Error::other(format!(
                "it does not listen on {address}: {}",
                output.trim()
            )));
        }
        started.ready_after = clock::now().since(began);
        Ok(started)
    }

    /// Signals it to end, and waits at most `limit` until it has.
    pub fn stop(mut self, limit: Duration) -> io::Result<()> {
        send(self.child.id(), Signal::TERM);
        if wait_until(limit, || self.has_ended()) {
            return Ok(());
        }
        Err(io::Error::other(format!("it did not end in {limit:?}")))
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// The ids of its process and of that process's children.
    pub fn processes(&self) -> Vec<u32> {
        let mut family = vec![self.child.id()];
        let mut visited = 0;
        while let Some(parent) = family.get(visited).copied() {
            family.extend(children(parent));
            visited += 1;
        }
        family
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let id = self.child.id();
        if !self.has_ended() {
            send(id, Signal::TERM);
        }
        if !wait_until(Duration::from_secs(1), || self.has_ended()) {
            for process in self.processes() {
                send(process, Signal::KILL);
            }
            let _ended = self.child.wait();
        }
        with_running(|all| all.retain(|other| *other != id));
    }
}

/// The path of a program, from PATH and from the usual folders of servers.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(MORE_FOLDERS.map(PathBuf::from));
    folders
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Ends the running programs, and then this program, when a signal stops it early.
pub fn stop_programs_on_signal() {
    thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            let signals = (
                signal(SignalKind::interrupt()),
                signal(SignalKind::terminate()),
            );
            let (Ok(mut interrupt), Ok(mut terminate)) = signals else {
                return;
            };
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            with_running(|all| all.iter().for_each(|process| send(*process, Signal::TERM)));
            std::process::exit(130);
        });
    });
}

/// Returns the ids of the children of a process.
fn children(parent: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let listed = listed.unwrap_or_default();
    listed
        .split_whitespace()
        .filter_map(|id| id.parse().ok())
        .collect()
}

/// Sends a signal to a process.
fn send(process: u32, signal: Signal) {
    if let Some(id) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        // The process may have ended by itself.
        let _sent = kill_process(id, signal);
    }
}

/// Reads or changes the list of running programs.
fn with_running<T>(change: impl FnOnce(&mut Vec<u32>) -> T) -> T {
    change(&mut RUNNING.lock().unwrap_or_else(PoisonError::into_inner))
}
