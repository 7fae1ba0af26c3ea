//! `drip top` with a gateway under load.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::support::{Client, free_address};
use crate::top::pty::Pty;

struct Gateway {
    process: Child,
    folder: TempDir,
    ports: [u16; 2],
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Gateway {
    /// It forwards to its own admin port: any answer will do.
    fn start() -> Self {
        let ports = [(); 2].map(|()| free_address().port());
        let folder = tempfile::tempdir().unwrap();
        save(&folder, ports, "1r/s");
        let process = Command::new(env!("CARGO_BIN_EXE_drip"))
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let admin = ([127, 0, 0, 1], ports[1]).into();
        let up = || Client::try_fetch(admin, "/readyz").is_ok_and(|it| it.status == 200);
        assert!((0..500).any(|_| {
            thread::sleep(Duration::from_millis(20));
            up()
        }));
        Self {
            process,
            folder,
            ports,
        }
    }

    /// This many requests at once, which wait for their turns.
    fn crowd(&self, count: usize) -> Vec<TcpStream> {
        let call = |_| {
            let mut stream = TcpStream::connect(("127.0.0.1", self.ports[0])).unwrap();
            stream
                .write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
                .unwrap();
            stream
        };
        (0..count).map(call).collect()
    }
}

fn save(folder: &TempDir, [port, admin]: [u16; 2], rate: &str) {
    let text = format!(
        "[server]\nlisten = [\"127.0.0.1:{port}\"]\nadmin = \"127.0.0.1:{admin}\"\n\
         [origins.app]\nservers = [\"http://127.0.0.1:{admin}\"]\n\
         [zones.per_client]\nkey = \"$remote_addr\"\nrate = \"{rate}\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{{ zone = \"per_client\", burst = 40 }}]\n"
    );
    fs::write(folder.path().join("gateway.toml"), text).unwrap();
}

#[test]
fn a_gateway_under_load_is_seen_as_it_is() {
    let gateway = Gateway::start();
    let address = format!("127.0.0.1:{}", gateway.ports[1]);
    let mut pty = Pty::top(&address, (120, 36));
    let idle = pty.wait_for(&["gateway.toml: ok", "per_client  1r/s", "asked"]);
    assert!(!idle.contains("waiting in"), "{idle}");
    let mut crowd = gateway.crowd(60);
    pty.wait_for(&["waiting in", "127.0.0.1", "per_client rejects"]);
    save(&gateway.folder, gateway.ports, "100r/s");
    pty.wait_for(&["per_client  100r/s"]);
    save(&gateway.folder, gateway.ports, "100 a fortnight");
    pty.wait_for(&["gateway.toml: broken since", "line 8"]);
    let mut accepted = 0;
    for stream in &mut crowd {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        accepted += usize::from(answer.starts_with("HTTP/1.1 200"));
    }
    // One more for each second that the crowd took to come.
    assert!((41..50).contains(&accepted), "{accepted}");
    pty.press("q");
    assert!(pty.ended().success());
}
