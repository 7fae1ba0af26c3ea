//! Runs the program in its own process, and reads its log and admin port.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::metrics::Metrics;
use super::process::Process;
use super::{Answer, Client, PATIENCE, eventually, fetch, now, whole_lines};

/// Returns the program's command, without the environment variables that the program reads.
pub fn drip() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_drip"));
    for variable in [
        "DRIP_ADMIN_TOKEN",
        "DRIP_ADMIN_READ_TOKEN",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    ] {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null());
    command
}

/// Returns an address without a listener.
pub fn free_address() -> SocketAddr {
    // The ports are below those that the kernel gives to outgoing connections, so no other test's
    // client takes one before the gateway listens. They are above 10080, which browsers refuse to
    // open.
    const FIRST: u16 = 12_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    static BLOCK: LazyLock<(u16, Option<UnixListener>)> = LazyLock::new(claim_block);
    let first = FIRST + BLOCK.0 * PORTS;
    loop {
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let address = SocketAddr::from(([127, 0, 0, 1], first + nth % PORTS));
        if is_free(address) {
            return address;
        }
    }
}

/// Returns whether the port is free, without listening on it.
///
/// A listening socket would be inherited by a process that another thread starts meanwhile, until
/// that process runs its program. A client of that moment would be reset.
fn is_free(address: SocketAddr) -> bool {
    let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
    let socket = socket_with(family, SocketType::STREAM, flags, None).expect("a socket");
    sockopt::set_socket_reuseaddr(&socket, true).expect("an option");
    bind(&socket, &address).is_ok()
}

/// Number of ports of one test process.
const PORTS: u16 = 2_000;

/// Claims a block of ports that no other test process has, as long as this process runs.
///
/// Two processes with the same ports would reach each other's gateways.
fn claim_block() -> (u16, Option<UnixListener>) {
    const BLOCKS: u16 = 10;
    let claimed = (0..BLOCKS).find_map(|block| {
        let name = format!("drip-tests-{block}");
        let name = UnixAddr::from_abstract_name(name).ok()?;
        Some((block, Some(UnixListener::bind_addr(&name).ok()?)))
    });
    let id = u16::try_from(std::process::id() % u32::from(BLOCKS)).unwrap_or_default();
    claimed.unwrap_or((id, None))
}

/// Folder and addresses of one gateway.
#[derive(Debug)]
pub struct Site {
    folder: TempDir,
    pub address: SocketAddr,
    pub admin: SocketAddr,
}

impl Site {
    pub fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        Self {
            folder,
            address: free_address(),
            admin: free_address(),
        }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self) -> PathBuf {
        self.folder().join("gateway.toml")
    }

    /// Returns a complete file: this site's addresses, then `rest`.
    ///
    /// `rest` may begin with more fields of `[server]`.
    pub fn text(&self, rest: &str) -> String {
        format!(
            "[server]\nlisten = [\"{}\"]\nadmin = \"{}\"\n{rest}",
            self.address, self.admin
        )
    }

    pub fn write(&self, rest: &str) {
        fs::write(self.file(), self.text(rest)).expect("a file");
    }
}

/// The running program.
#[derive(Debug)]
pub struct Gateway {
    pub site: Site,
    process: Child,
    log: Arc<Log>,
    /// Thread that reads the log until the program ends.
    reader: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Log {
    /// Lines of the log, each with the instant of its arrival.
    lines: Mutex<Vec<(Instant, String)>>,
    more: Condvar,
}

impl Gateway {
    /// Starts the program on a file with `rest` after the addresses, and waits until it is ready.
    pub fn start(rest: &str) -> Self {
        Self::start_with(rest, &[])
    }

    /// Starts the program with these environment variables.
    pub fn start_with(rest: &str, variables: &[(&str, &Path)]) -> Self {
        let site = Site::new();
        site.write(rest);
        Self::run_with(site, variables).ready()
    }

    /// Starts the program on the file of `site`, and waits until it is ready.
    pub fn start_at(site: Site) -> Self {
        Self::run(site).ready()
    }

    fn ready(self) -> Self {
        self.wait_until_ready();
        self
    }

    /// Starts the program as [`Gateway::start`] does, with these files beside its own.
    pub fn start_beside(files: &[(&str, &str)], rest: &str) -> Self {
        let site = Site::new();
        for (name, text) in files {
            fs::write(site.folder().join(name), text).expect("a file");
        }
        site.write(rest);
        Self::start_at(site)
    }

    /// Starts the program as [`Gateway::start`] does, with a socket file beside its address.
    pub fn start_with_unix_socket(rest: &str) -> (Self, PathBuf) {
        let site = Site::new();
        let text = site.text(rest);
        let text = text.replacen("listen = [", "listen = [\"unix:drip.sock\", ", 1);
        fs::write(site.file(), text).expect("a file");
        let gateway = Self::start_at(site);
        let socket = gateway.site.folder().join("drip.sock");
        (gateway, socket)
    }

    /// Waits until the program accepts requests.
    pub fn wait_until_ready(&self) {
        eventually("the gateway is ready", || {
            self.admin("/readyz")
                .is_some_and(|answer| answer.status == 200)
        });
    }

    /// Starts the program on the file of `site`.
    pub fn run(site: Site) -> Self {
        Self::run_with(site, &[])
    }

    fn run_with(site: Site, variables: &[(&str, &Path)]) -> Self {
        let mut command = drip();
        command
            .envs(variables.iter().copied())
            .arg("-c")
            .arg(site.file());
        Self::run_as(site, command)
    }

    /// Starts the program by `command`, on the file of `site`.
    pub fn run_as(site: Site, mut command: Command) -> Self {
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the program starts");
        let stderr = process.stderr.take().expect("a pipe");
        let log = Arc::<Log>::default();
        let to_log = Arc::clone(&log);
        let reader = thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                to_log.lines.lock().expect("no panic").push((now(), line));
                to_log.more.notify_all();
            }
        });
        Self {
            site,
            process,
            log,
            reader: Some(reader),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.site.address
    }

    /// Connects a client over HTTP/1.1.
    pub fn connect(&self) -> Client {
        Client::connect(self.address())
    }

    /// Connects and sends a GET, without reading the response.
    pub fn ask(&self, target: &str) -> Client {
        Client::ask(self.address(), target)
    }

    /// Sends a GET on a new connection and returns the response.
    pub fn fetch(&self, target: &str) -> Answer {
        fetch(self.address(), target)
    }

    /// Sends this many GETs, one after the other. Fails unless each gets this status.
    #[track_caller]
    pub fn check_each(&self, count: usize, target: &str, status: u16) {
        for nth in 0..count {
            let found = self.fetch(target).status;
            assert_eq!(found, status, "request {nth} for {target}");
        }
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns a response of the admin port; `None` if nothing listens there.
    pub fn admin(&self, path: &str) -> Option<Answer> {
        TcpStream::connect(self.site.admin).ok()?;
        Some(fetch(self.site.admin, path))
    }

    /// Returns what `drip top` prints into a pipe.
    pub fn top(&self) -> String {
        let top = drip().args(["top", &self.site.admin.to_string()]).output();
        let top = top.expect("it runs");
        assert!(top.status.success(), "{top:?}");
        String::from_utf8(top.stdout).expect("text")
    }

    pub fn metrics(&self) -> Metrics {
        Metrics(self.admin("/metrics").expect("an admin port").text())
    }

    /// Returns the current value of a metric, as [`Metrics::value`] finds it.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.metrics().value(name, labels)
    }

    /// Returns the current value of a metric as a whole number; 0 if there is none.
    pub fn count(&self, name: &str, labels: &[(&str, &str)]) -> i64 {
        self.metrics().count(name, labels)
    }

    /// Returns the lines of `access.log` in JSON, once there are at least `count`.
    pub fn access_log(&self, count: usize) -> Vec<Value> {
        let log = self.site.folder().join("access.log");
        let what = format!("{count} lines in the access log");
        eventually(&what, || whole_lines(&log).lines().count() >= count);
        let lines = whole_lines(&log);
        let lines = lines.lines().map(serde_json::from_str);
        lines.map(|line| line.expect("JSON")).collect()
    }

    /// Returns the log so far.
    pub fn log(&self) -> String {
        let lines: Vec<String> = self.log_lines().into_iter().map(|(_, line)| line).collect();
        lines.join("\n")
    }

    /// Returns the complete log, once the program has ended.
    pub fn whole_log(&mut self) -> String {
        let has_ended = matches!(self.process.try_wait(), Ok(Some(_)));
        assert!(has_ended, "it still runs");
        if let Some(reader) = self.reader.take() {
            reader.join().expect("no panic");
        }
        self.log()
    }

    /// Returns the lines of the log so far, each with the instant of its arrival.
    pub fn log_lines(&self) -> Vec<(Instant, String)> {
        let lines = self.log.lines.lock();
        lines.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for a line of the log that contains `part`.
    pub fn wait_for_line(&self, part: &str) -> String {
        let found = |lines: &[(Instant, String)]| {
            let mut lines = lines.iter().map(|(_, line)| line);
            lines.find(|line| line.contains(part)).cloned()
        };
        let lines = self.log.lines.lock().expect("no panic");
        let waited = self
            .log
            .more
            .wait_timeout_while(lines, PATIENCE, |lines| found(lines).is_none());
        let (lines, _) = waited.expect("no panic");
        found(&lines).unwrap_or_else(|| panic!("no line of the log has {part:?}"))
    }

    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw)
            .expect("a process");
        kill_process(id, signal).expect("the process is there");
    }

    /// Waits for the program to end by itself.
    ///
    /// Its main thread ends within the limit. On a busy machine the kernel may take seconds more to
    /// close its inotify descriptor. Until then the process cannot be reaped.
    pub fn wait(&mut self, limit: Duration) -> ExitStatus {
        let deadline = now() + limit;
        loop {
            if let Some(status) = self.process.try_wait().expect("a child") {
                return status;
            }
            if self.main_thread_has_ended() {
                return self.process.wait().expect("a child");
            }
            assert!(now() < deadline, "the gateway still runs after {limit:?}");
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn main_thread_has_ended(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/stat", self.id()));
        status.is_ok_and(|status| status.contains(") Z "))
    }

    /// Returns the peak resident memory of the process so far, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let peak = Process::of(self.id()).peak_memory();
        peak.expect("a running process")
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // The program may have ended by itself.
        let _ended = self.process.kill();
        let _ended = self.process.wait();
        if thread::panicking() {
            eprintln!("the gateway's log:\n{}", self.log());
        }
    }
}
