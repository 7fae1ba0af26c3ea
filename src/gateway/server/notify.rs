//! Notifies the service manager of the gateway's state, by the protocol of `sd_notify(3)`.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use config::{Server, Settings};

use crate::time::clock;

/// Service manager that started this process.
///
/// Without `NOTIFY_SOCKET` there is none, and notifications are dropped.
pub(super) struct ServiceManager(Option<UnixDatagram>);

impl ServiceManager {
    /// Connects to the manager at `NOTIFY_SOCKET`.
    pub(super) fn from_env() -> Self {
        let name = env::var_os("NOTIFY_SOCKET");
        Self(name.and_then(|name| {
            let log = |error: &io::Error| {
                tracing::warn!(%error, "cannot connect to NOTIFY_SOCKET: the service manager gets no messages");
            };
            connect(&name).inspect_err(log).ok()
        }))
    }

    /// Notifies that the gateway serves with `settings`.
    pub(super) fn send_ready(&self, settings: &Settings) {
        let status = describe_addresses(&settings.server);
        self.send(&format!("READY=1\nSTATUS={status}"));
    }

    /// Notifies that the file is read again. [`Self::send_ready`] or [`Self::send_refused`]
    /// must follow.
    pub(super) fn send_reloading(&self) {
        self.send(&format!(
            "RELOADING=1\nMONOTONIC_USEC={}",
            clock::monotonic_nanos() / 1000
        ));
    }

    /// Notifies that the file has errors and the old settings stay in force.
    pub(super) fn send_refused(&self) {
        self.send("READY=1\nSTATUS=The file has errors: the previous settings stay in force");
    }

    /// Notifies that the gateway stops within `limit` and the time for last responses.
    pub(super) fn send_stopping(&self, limit: Duration) {
        self.send(&format!(
            "STOPPING=1\nSTATUS=Stopping: waiting requests depart at their rate for at most {limit:?}"
        ));
    }

    /// Notifies that all threads respond, as the manager's watchdog requires. See
    /// [`Watchdog`](super::watchdog::Watchdog).
    pub(super) fn send_alive(&self) {
        self.send("WATCHDOG=1");
    }

    /// Sends a message to the manager.
    fn send(&self, message: &str) {
        if let Some(socket) = &self.0 {
            // If a notification is lost, the manager acts on its absence.
            let _lost = socket.send(message.as_bytes());
        }
    }
}

/// Connects to a socket file, or to an abstract name if it begins with `@`.
fn connect(name: &OsStr) -> io::Result<UnixDatagram> {
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(name)?,
        _ => return Err(io::Error::other("expected a path or @NAME")),
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    // A manager that does not read must not block the gateway.
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Describes in one line where clients and operators reach the gateway.
fn describe_addresses(server: &Server) -> String {
    let listen = server.listen.iter().map(ToString::to_string);
    let listen = listen.collect::<Vec<_>>().join(", ");
    let page = server.admin.map_or(String::new(), |admin| {
        format!("; live page at http://{admin}/")
    });
    // A line break in the name of a socket file would begin another assignment.
    format!("Serving at {listen}{page}").replace(char::is_control, "?")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Receives a message as the service manager.
    fn receive(manager: &UnixDatagram) -> String {
        let mut buffer = [0; 512];
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn a_socket_file_and_an_abstract_name_are_reached() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("notify");
        let abstract_name = format!("drip-test-{}", std::process::id());
        let abstract_address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        for (manager, name) in [
            (UnixDatagram::bind(&file).unwrap(), file.into_os_string()),
            (
                UnixDatagram::bind_addr(&abstract_address).unwrap(),
                format!("@{abstract_name}").into(),
            ),
        ] {
            let socket = Some(connect(&name).unwrap());
            ServiceManager(socket).send_alive();
            assert_eq!(receive(&manager), "WATCHDOG=1");
        }
        assert!(connect(OsStr::new("vsock:2:1")).is_err());
    }

    #[test]
    fn a_reload_notification_has_the_monotonic_time() {
        let (ours, manager) = UnixDatagram::pair().unwrap();
        ServiceManager(Some(ours)).send_reloading();
        let received = receive(&manager);
        let time = received
            .strip_prefix("RELOADING=1\nMONOTONIC_USEC=")
            .unwrap();
        let time: u64 = time.parse().unwrap();
        assert!(
            (1..=clock::monotonic_nanos() / 1000).contains(&time),
            "{received}"
        );
    }

    #[test]
    fn a_status_is_one_line() {
        let plain = crate::test_settings::with("");
        let found = describe_addresses(&plain.server);
        assert_eq!(
            found,
            "Serving at 127.0.0.1:8080; live page at http://127.0.0.1:9090/"
        );
        let odd = crate::test_settings::with(
            "[server]\nlisten = [\"unix:a\\nMAINPID=1\"]\nadmin = \"off\"",
        );
        let received = describe_addresses(&odd.server);
        assert!(received.ends_with("a?MAINPID=1"), "{received}");
    }
}
