//! The measured gateway: its program, its file, and how it is started.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::support::placement::{Side, free_address};
use crate::support::process::Running;
use crate::support::{tls, usage};

// Paths, each with a route. The key is the field X-Key.
/// Passes every request.
pub const PASS: &str = "/pass";
/// Passes the first request of a key.
pub const SHUT: &str = "/shut";
/// Delays each request except the first, up to 20 ms.
pub const WAIT: &str = "/wait";
/// Passes every request, through a gate that the keys share.
pub const GATE: &str = "/gate";
/// Passes every request of a key with a plan; it has a cost, and is refunded.
pub const PLAN: &str = "/plan";
/// Delays each request of a key except the first for longer than any measurement takes.
pub const HELD: &str = "/held";
/// Delays requests in the same way, at the gate of the origin.
pub const HELD_AT_GATE: &str = "/held-at-gate";
/// Passes one request of each key, by way of its actor, because the limit counts permits.
pub const WITH_ACTOR: &str = "/with-actor";
/// Passes one request of each key, and remembers the key.
pub const KEYS: &str = "/keys";

/// Answers from memory, after the first request.
pub const KEPT: &str = "/kept";
/// Collapses: each request after the second waits for the second, which waits at a gate.
pub const FOLLOWS: &str = "/follows";

/// Passes every request of a visitor who is inside.
pub const ROOM: &str = "/room";
/// One visitor is inside, and all others wait.
pub const FULL_ROOM: &str = "/full-room";

/// Timeout for a program under valgrind to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Delay of the slow origin's response.
///
/// A task that runs within half a millisecond after an alarm gives way to departures once more.
/// With this delay, the end of a request that waited always comes later.
pub const SLOW: Duration = Duration::from_millis(2);

/// Addresses of the origins.
#[derive(Clone, Copy, Debug)]
pub struct Origins {
    /// Origin that answers at once.
    pub quick: SocketAddr,
    /// Origin that answers after [`SLOW`].
    pub slow: SocketAddr,
}

/// Returns the folder of the measured program's build, which has its own compiler flags.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/budget")
}

/// Builds the program with this profile, which keeps symbols, so that valgrind can run it.
///
/// Valgrind 3.19 stops where rustix reads the vdso, so rustix uses libc.
pub fn build(profile: &str) -> io::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let built = Command::new(cargo)
        .args(["build", "--locked", "--profile", profile, "--bin", "drip"])
        .arg("--target-dir")
        .arg(folder())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("RUSTFLAGS", "--cfg rustix_use_libc")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()?;
    if !built.success() {
        return Err(io::Error::other("the program does not build"));
    }
    Ok(folder().join(profile).join("drip"))
}

/// A running gateway.
#[derive(Debug)]
pub struct Gateway {
    /// Address without TLS.
    pub plain: SocketAddr,
    /// Address with TLS.
    pub tls: SocketAddr,
    running: Running,
    folder: TempDir,
}

impl Gateway {
    /// Starts `program`, under valgrind if it is to be `profiled`.
    pub fn start(program: &Path, origins: Origins, profiled: bool) -> io::Result<Self> {
        let folder = TempDir::new()?;
        let [plain, tls] = [free_address(), free_address()];
        fs::write(
            folder.path().join("gateway.toml"),
            file(plain, tls, origins),
        )?;
        let identity = tls::identity();
        fs::write(folder.path().join("server.pem"), &identity.certificate)?;
        fs::write(folder.path().join("server.key"), &identity.key)?;
        let mut command = if profiled {
            let mut command = Command::new("valgrind");
            command
                .args(["--quiet", "--tool=callgrind", "--separate-threads=yes"])
                .arg("--callgrind-out-file=profile")
                .arg(program);
            command
        } else {
            Command::new(program)
        };
        command
            .args(["run", "-c", "gateway.toml"])
            .current_dir(folder.path())
            .env_clear()
            // Freed memory goes back to the kernel at once. By default some stays, by chance.
            .env("MIMALLOC_PURGE_DELAY", "0")
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        let log = folder.path().join("log");
        let running = Running::start(command, Side::Anywhere, plain, &log)?;
        Ok(Self {
            plain,
            tls,
            running,
            folder,
        })
    }

    /// Returns the memory of the gateway, in bytes.
    pub fn memory(&self) -> u64 {
        usage::memory(&self.running.processes())
    }

    pub fn descriptors(&self) -> usize {
        usage::descriptors(&self.running.processes())
    }

    /// Ends the gateway. Returns the profiles of its threads.
    ///
    /// The first thread is left out because it serves no request.
    pub fn into_profiles(self) -> io::Result<Vec<String>> {
        self.running.stop(PATIENCE)?;
        let mut profiles = Vec::new();
        for entry in fs::read_dir(self.folder.path())? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let thread = name.strip_prefix("profile-");
            if thread.is_some_and(|thread| thread != "01") {
                profiles.push(fs::read_to_string(&path)?);
            }
        }
        if profiles.is_empty() {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            return Err(io::Error::other(format!("no profile was written: {log}")));
        }
        Ok(profiles)
    }
}

/// Returns a file with one worker, and without optional work that runs by the clock.
fn file(plain: SocketAddr, tls: SocketAddr, origins: Origins) -> String {
    let Origins { quick, slow } = origins;
    let (rooms, collapsing) = (rooms(quick), collapsing());
    format!(
        r#"
[server]
listen = [
    {{ address = "{tls}", tls = true }},
    {{ address = "{plain}", tls = false }},
]
admin = "off"
workers = 1
keep_alive = "1h"

[server.tls]
cert = "server.pem"
key = "server.key"

[origins.app]
servers = ["http://{quick}"]

[origins.slow]
servers = ["http://{slow}"]

[origins.gated]
servers = ["http://{quick}"]
share = "pass"
rate = "1000000r/s"
max_in_flight = 1000

[origins.held]
servers = ["http://{quick}"]
share = "pass"
rate = "1r/m"
queue = 100000
max_queue = 100000
queue_timeout = "1000h"

[zones.pass]
key = "$http_x_key"
rate = "1000000r/s"

[zones.shut]
key = "$http_x_key"
rate = "1r/h"

[zones.wait]
key = "$http_x_key"
rate = "50r/s"

[zones.plan]
key = "$http_x_key"
rate = "1r/h"

[zones.plan.plans.gold]
keys = ["7"]
rate = "1000000r/s"
burst = 100000
weight = 8

[zones.keys]
key = "$http_x_key"
rate = "1r/h"
max_keys = 1000000

[[routes]]
path = "{PASS}"
origin = "app"
limits = [{{ zone = "pass", burst = 100000, nodelay = true }}]

[[routes]]
path = "{SHUT}"
origin = "app"
limits = [{{ zone = "shut", burst = 0 }}]

[[routes]]
path = "{WAIT}"
origin = "slow"
limits = [{{ zone = "wait", burst = 100000 }}]

[[routes]]
path = "{GATE}"
origin = "gated"
limits = [{{ zone = "pass", burst = 100000, nodelay = true }}]

[[routes]]
path = "{PLAN}"
origin = "app"
cost = 5
refund = ["2xx"]
limits = [{{ zone = "plan", burst = 100, nodelay = true }}]

[[routes]]
path = "{HELD}"
origin = "app"
limits = [{{ zone = "shut", burst = 100000 }}]

[[routes]]
path = "{HELD_AT_GATE}"
origin = "held"
limits = [{{ zone = "pass", burst = 100000, nodelay = true }}]

[[routes]]
path = "{WITH_ACTOR}"
origin = "app"
limits = [{{ zone = "shut", burst = 0, in_flight = 1 }}]

[[routes]]
path = "{KEYS}"
origin = "app"
limits = [{{ zone = "keys", burst = 0 }}]
{rooms}{collapsing}"#
    )
}

/// Two origins with waiting rooms.
fn rooms(quick: SocketAddr) -> String {
    let room = |name: &str, path: &str, sessions: u32| {
        format!(
            r#"
[origins.{name}]
servers = ["http://{quick}"]

[origins.{name}.room]
sessions = {sessions}
secret = "sixteen bytes and more"
draw = "none"

[[routes]]
path = "{path}"
origin = "{name}"
limits = [{{ zone = "pass", burst = 100000, nodelay = true }}]
"#
        )
    };
    room("room", ROOM, 1000) + &room("full", FULL_ROOM, 1)
}

/// Two routes that collapse.
fn collapsing() -> String {
    format!(
        r#"
[[routes]]
path = "{KEPT}"
origin = "app"
limits = [{{ zone = "pass", burst = 100000, nodelay = true }}]

[routes.collapse]
keep = "1h"

[[routes]]
path = "{FOLLOWS}"
origin = "held"
limits = [{{ zone = "pass", burst = 100000, nodelay = true }}]

[routes.collapse]
"#
    )
}
