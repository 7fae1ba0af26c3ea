//! The unit of the package, and a fake systemd.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::package::output;
use crate::package::root::Root;
use crate::support::{SOON, now};

/// `drip.service`, as it was installed.
#[derive(Debug)]
pub(super) struct Unit {
    text: String,
}

impl Unit {
    pub(super) fn of(root: &Root) -> Self {
        let text = root.read("usr/lib/systemd/system/drip.service");
        Self::read(root.outside(&text))
    }

    pub(super) fn read(text: String) -> Self {
        Self { text }
    }

    /// Returns the values of a setting, in order.
    pub(super) fn all(&self, name: &str) -> Vec<&str> {
        let lines = self.text.lines();
        let values = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        values.collect()
    }

    /// Returns the value of a setting that the unit has once.
    pub(super) fn one(&self, name: &str) -> &str {
        match self.all(name)[..] {
            [value] => value,
            ref values => panic!("{name}: {values:?}"),
        }
    }

    pub(super) fn seconds(&self, name: &str) -> Duration {
        Duration::from_secs(self.one(name).parse().expect("seconds"))
    }

    /// Returns the command of the service, as systemd starts it, with messages to `manager`.
    pub(super) fn start(&self, manager: &Manager, watchdog: Duration) -> Command {
        assert_eq!(self.one("Type"), "notify");
        assert!(self.seconds("WatchdogSec") > Duration::ZERO);
        let mut shell = Command::new("sh");
        shell
            .arg("-c")
            .arg(format!(
                "umask {} && export WATCHDOG_PID=$$ && exec {}",
                self.one("UMask"),
                self.one("ExecStart")
            ))
            .env("NOTIFY_SOCKET", &manager.path)
            .env("WATCHDOG_USEC", watchdog.as_micros().to_string())
            .env_remove("DRIP_ADMIN_TOKEN")
            .env_remove("DRIP_ADMIN_READ_TOKEN")
            .stdin(Stdio::null());
        shell
    }

    /// Reloads as `systemctl reload` does. Returns the output of the first command that fails.
    pub(super) fn reload(&self, process: u32) -> Result<(), String> {
        for command in self.all("ExecReload") {
            // A command that names a shell is quoted for a shell.
            let mut shell = Command::new("sh");
            shell
                .args(["-c", command])
                .env("MAINPID", process.to_string());
            let output = output(&mut shell);
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).into_owned());
            }
        }
        Ok(())
    }
}

/// The socket on which systemd receives messages of its services.
#[derive(Debug)]
pub(super) struct Manager {
    socket: UnixDatagram,
    path: std::path::PathBuf,
}

impl Manager {
    pub(super) fn listen(folder: &Path) -> Self {
        let path = folder.join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        Self { socket, path }
    }

    /// Waits for a message that begins with `part`, and returns it. Skips watchdog messages.
    pub(super) fn hear(&self, part: &str) -> String {
        let deadline = now() + SOON;
        loop {
            let datagram = self.next(deadline.saturating_duration_since(now()));
            let datagram = datagram.unwrap_or_else(|| panic!("waited {SOON:?} in vain for {part}"));
            if datagram.starts_with(part) {
                return datagram;
            }
            assert_eq!(datagram, "WATCHDOG=1", "before {part}");
        }
    }

    /// Returns the next message, if one arrives within `limit`.
    pub(super) fn next(&self, limit: Duration) -> Option<String> {
        // Zero would mean to wait forever.
        let limit = limit.max(Duration::from_millis(1));
        let mut buffer = [0; 4096];
        self.socket.set_read_timeout(Some(limit)).expect("a limit");
        match self.socket.recv(&mut buffer) {
            Ok(length) => Some(String::from_utf8_lossy(&buffer[..length]).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Returns the value of one assignment of a message.
    pub(super) fn value<'a>(message: &'a str, name: &str) -> &'a str {
        let mut lines = message.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        value.unwrap_or_else(|| panic!("no {name} in {message:?}"))
    }
}
