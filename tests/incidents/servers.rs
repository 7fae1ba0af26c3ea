//! Servers that become slow, fail, hang or close, and files of gateways before them.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use crate::support::{Exchange, Origin};

/// Behaviour of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Answers in 20 ms.
    #[default]
    Fine,
    /// Answers in 1.5 s.
    Slow,
    /// Answers in 4 s.
    VerySlow,
    /// Answers at once with 500.
    Error,
    /// Closes the connection.
    Close,
    /// Does not answer before it gets another mode.
    Hang,
}

const USUAL: Duration = Duration::from_millis(20);

/// A server whose mode a test sets. Dropping it closes the connections of hanging requests.
pub struct Server {
    pub origin: Origin,
    mode: Arc<Current>,
}

#[derive(Default)]
struct Current {
    mode: Mutex<Mode>,
    changed: Condvar,
}

impl Server {
    pub fn start() -> Self {
        let mode = Arc::<Current>::default();
        let current = Arc::clone(&mode);
        let origin = Origin::answering(move |exchange| answer(exchange, &current));
        Self { origin, mode }
    }

    pub fn be(&self, mode: Mode) {
        *self.mode.mode.lock().expect("no panic") = mode;
        self.mode.changed.notify_all();
    }

    pub fn address(&self) -> SocketAddr {
        self.origin.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.be(Mode::Close);
    }
}

fn answer(exchange: &mut Exchange, current: &Current) -> io::Result<()> {
    exchange.body()?;
    let mode = current.mode.lock().expect("no panic");
    let mode = current
        .changed
        .wait_while(mode, |mode| *mode == Mode::Hang)
        .map(|mode| *mode)
        .expect("no panic");
    match mode {
        Mode::Close => return Exchange::close(),
        Mode::Error => {
            return exchange.send(b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n");
        }
        Mode::Slow => thread::sleep(Duration::from_millis(1500)),
        Mode::VerySlow => thread::sleep(Duration::from_secs(4)),
        Mode::Fine | Mode::Hang => thread::sleep(USUAL),
    }
    exchange.reply(b"ok")
}

/// Answers in the usual time and closes: the next request needs a new connection.
pub fn answer_once(exchange: &mut Exchange) -> io::Result<()> {
    thread::sleep(USUAL);
    exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")?;
    Exchange::close()
}

/// Returns a file with the origin `app` over HTTP/1.
///
/// `origin`: more fields of the origin. `rest`: whole tables, and fields of the route `/`.
pub fn app(servers: &[SocketAddr], origin: &str, rest: &str) -> String {
    let servers: Vec<_> = servers.iter().map(|to| format!("http://{to}")).collect();
    format!(
        "[origins.app]\nservers = {servers:?}\n{origin}\n\n[[routes]]\npath = \"/\"\norigin = \"app\"\n{rest}\n"
    )
}

/// Returns a file with the zone `per_key`, given by its fields, and the limited route `path`.
pub fn limited(server: SocketAddr, zone: &str, path: &str, limit: &str) -> String {
    format!(
        "[origins.app]\nservers = [\"http://{server}\"]\n\n[zones.per_key]\n{zone}\n\n\
         [[routes]]\npath = \"{path}\"\norigin = \"app\"\nlimits = [{{ zone = \"per_key\", {limit} }}]\n"
    )
}

/// Returns such a file with the argument `key` as the key, for the route `/`. Line 7 is `rate`.
pub fn rated(server: &Server, rate: &str, limit: &str) -> String {
    let file = limited(server.address(), "@\nkey = \"$arg_key\"", "/", limit);
    file.replacen(
        "\n\n[zones.per_key]\n@",
        &format!("\n[zones.per_key]\n{rate}"),
        1,
    )
}
