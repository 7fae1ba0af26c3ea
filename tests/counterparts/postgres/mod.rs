//! A database that refuses one connection more than it has places for.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;

use rustix::process::Signal;

use crate::programs::redis::Redis;
use crate::redis::shared::places::{busy, file, pass, told};
use crate::support::free_address;
use crate::support::{Gateway, Origin, eventually, half_alone};

/// Where Debian keeps the programs of the newest version.
fn programs() -> PathBuf {
    let versions =
        fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL, which tests/run.sh installs");
    let mut found: Vec<_> = versions.flatten().map(|it| it.path().join("bin")).collect();
    found.sort();
    found.pop().expect("a version")
}

/// A PostgreSQL of its own, as a user that is not root.
struct Postgres {
    process: Child,
    at: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Postgres {
    /// With so many connections for users that are no superusers.
    fn start(connections: usize) -> Self {
        let (folder, at) = (tempfile::tempdir().expect("a folder"), free_address());
        let data = folder.path().join("data");
        let as_user = |program: &str| {
            let path = programs().join(program);
            if !rustix::process::geteuid().is_root() {
                return Command::new(path);
            }
            // It does not start as root.
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
            command.arg(path);
            command
        };
        if rustix::process::geteuid().is_root() {
            let owner = Command::new("chown")
                .args(["postgres"])
                .arg(folder.path())
                .status();
            assert!(owner.expect("chown").success());
        }
        let made = as_user("initdb")
            .args(["--auth=trust", "--username=admin", "--no-sync", "-D"])
            .arg(&data)
            .stdout(Stdio::null())
            .status();
        assert!(made.expect("initdb").success());
        let settings = format!(
            "port = {}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\nfsync = off\n\
             max_connections = {}\nsuperuser_reserved_connections = 1\n",
            at.port(),
            connections + 1
        );
        // A later line of the file counts.
        let file = data.join("postgresql.conf");
        append(&file, &settings);
        let mut process = as_user("postgres");
        process.arg("-D").arg(&data);
        let process = process.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = process.expect("postgres");
        let this = Self {
            process,
            at,
            _folder: folder,
        };
        eventually("it takes connections", || ask(at, "admin", 0).is_ok());
        ask_to(at, "admin", "create role app login").expect("a role");
        this
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The fast way to stop.
        let id = rustix::process::Pid::from_child(&self.process);
        let _gone = rustix::process::kill_process(id, Signal::INT);
        let _gone = self.process.wait();
    }
}

fn append(file: &Path, text: &str) {
    let mut all = fs::read_to_string(file).expect("a file");
    all.push_str(text);
    fs::write(file, all).expect("a file");
}

/// Asks over a connection of its own for so many milliseconds of sleep.
fn ask(at: SocketAddr, user: &str, millis: u64) -> Result<(), String> {
    ask_to(at, user, &format!("select pg_sleep({millis} / 1000.0)"))
}

/// Source: PostgreSQL's documentation, "Message Formats".
fn ask_to(at: SocketAddr, user: &str, query: &str) -> Result<(), String> {
    let broken = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(at).map_err(broken)?;
    let body = format!("user\0{user}\0database\0postgres\0\0");
    let mut startup = 196_608_u32.to_be_bytes().to_vec();
    startup.extend(body.as_bytes());
    let length = u32::try_from(startup.len() + 4).expect("short");
    stream.write_all(&length.to_be_bytes()).map_err(broken)?;
    stream.write_all(&startup).map_err(broken)?;
    wait_until_ready(&mut stream)?;
    let length = u32::try_from(query.len() + 5).expect("short");
    let message = [b"Q", &length.to_be_bytes()[..], query.as_bytes(), b"\0"].concat();
    stream.write_all(&message).map_err(broken)?;
    wait_until_ready(&mut stream)?;
    stream.write_all(&[b'X', 0, 0, 0, 4]).map_err(broken)?;
    // Until it has closed, its place there is taken.
    let _closed = stream.read(&mut [0; 1]);
    Ok(())
}

fn wait_until_ready(stream: &mut TcpStream) -> Result<(), String> {
    loop {
        let mut head = [0; 5];
        stream
            .read_exact(&mut head)
            .map_err(|error| error.to_string())?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut body = vec![0; usize::try_from(length).expect("short").saturating_sub(4)];
        stream
            .read_exact(&mut body)
            .map_err(|error| error.to_string())?;
        match head[0] {
            b'Z' => return Ok(()),
            b'E' => return Err(String::from_utf8_lossy(&body).into_owned()),
            _ => {}
        }
    }
}

/// Three gateways with 90 clients before an application that opens a connection for each request: PostgreSQL never
/// refuses the 41st, also while a gateway is killed.
#[test]
fn a_database_that_breaks_at_41_never_gets_a_41st_connection() {
    let _machine = half_alone();
    let (postgres, redis) = (Postgres::start(40), Redis::start());
    let at = postgres.at;
    let failures = Arc::<std::sync::Mutex<Vec<String>>>::default();
    let its = Arc::clone(&failures);
    let app = Origin::answering(move |exchange| {
        if let Err(why) = ask(at, "app", 100) {
            its.lock().expect("no panic").push(why);
        }
        exchange.reply(b"done")
    });
    // It does refuse one.
    thread::scope(|scope| {
        let all: Vec<_> = (0..41)
            .map(|_| scope.spawn(|| ask(at, "app", 2000)))
            .collect();
        let refused = all.into_iter().filter(|_| true);
        let refused = refused.filter_map(|it| it.join().expect("a client").err());
        let refused: Vec<_> = refused.collect();
        assert!(
            refused
                .iter()
                .any(|why| why.contains("reserved") || why.contains("too many")),
            "{refused:?}"
        );
    });
    let text = file(
        app.address,
        &redis.url(),
        "max_in_flight = 40\norphan = \"2s\"",
    );
    let gateways = [0; 3].map(|_| Gateway::start(&text));
    eventually("all share", || {
        gateways.iter().all(|it| told(it, "gateways") == Some(3))
    });
    let crowds = gateways.each_ref().map(|it| (it, 30));
    busy(&crowds, "/", || {
        eventually("all places are lent", || {
            told(&gateways[0], "lent") == Some(40)
        });
        pass(2000);
        gateways[2].signal(Signal::KILL);
        pass(6000);
        assert_eq!(told(&gateways[0], "withheld"), Some(0));
        eventually("all places are lent", || {
            told(&gateways[0], "lent") == Some(40)
        });
        pass(1000);
    });
    let failures = failures.lock().expect("no panic");
    assert!(failures.is_empty(), "{failures:?}");
    assert!(
        app.arrivals().len() > 300,
        "{} requests",
        app.arrivals().len()
    );
}
