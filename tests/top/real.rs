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
        Self::start_with(&[])
    }

    /// With these variables in its environment.
    fn start_with(variables: &[(&str, &str)]) -> Self {
        let ports = [(); 2].map(|()| free_address().port());
        let folder = tempfile::tempdir().unwrap();
        save(&folder, ports, "1r/s");
        let process = Command::new(env!("CARGO_BIN_EXE_drip"))
            .current_dir(folder.path())
            .envs(variables.iter().copied())
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
    pty.wait_for(&[
        "connected",
        "gateway.toml: ok",
        "nobody waits",
        "burst 40",
        "asked",
    ]);
    let mut crowd = gateway.crowd(60);
    pty.wait_for(&["per_client, 127.0.0.1", "rejected for: burst 1"]);
    save(&gateway.folder, gateway.ports, "100r/s");
    pty.wait_for(&["100r/s leaky_bucket", "│ new file", "nobody waits"]);
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

#[test]
fn a_zone_is_paused_and_resumed_and_gets_another_rate_for_a_while() {
    let gateway = Gateway::start();
    let address = format!("127.0.0.1:{}", gateway.ports[1]);
    let mut pty = Pty::top(&address, (120, 36));
    pty.wait_for(&["connected", "> per_client", "1r/s"]);
    pty.press("p");
    pty.wait_for(&["zone per_client", "For how long?", "> 10m_"]);
    pty.press("\r");
    pty.wait_for(&["No request of per_client leaves for 10m", "Pause? y / n"]);
    pty.press("n");
    // Nothing was done, so this pauses, too.
    pty.press("p\x7f\x7f\x7f5m\ry");
    pty.wait_for(&["Pause: done", "paused", "not as in the file"]);
    let mut crowd = gateway.crowd(3);
    pty.wait_for(&["per_client, 127.0.0.1"]);
    pty.press("p");
    pty.wait_for(&[
        "Resume? y / n",
        "What differs from the file for per_client ends now.",
    ]);
    pty.press("y");
    pty.wait_for(&["Resume: done"]);
    for stream in &mut crowd {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    pty.press("r20 a day\r");
    pty.wait_for(&["the rate is \"20\""]);
    pty.press(&"\x7f".repeat("20 a day".len()));
    pty.press("200r/s 1h\r");
    pty.wait_for(&["Each key of per_client gets 200r/s for 1h."]);
    pty.press("y");
    pty.wait_for(&["Set the rate: done", "200r/s"]);
    pty.press("u");
    pty.wait_for(&["Undo? y / n"]);
    pty.press("y");
    pty.wait_for(&["Undo: done"]);
    pty.press("u");
    pty.wait_for(&["Undo? y / n"]);
    pty.press("y");
    pty.wait_for(&["Undo: nothing is overridden here"]);
    pty.press("R");
    pty.wait_for(&["the gateway", "Reload? y / n"]);
    pty.press("y");
    pty.wait_for(&["Reload: done"]);
    save(&gateway.folder, gateway.ports, "100 a fortnight");
    pty.press("Ry");
    pty.wait_for(&["Reload: line 8: rate"]);
    pty.press("q");
    assert!(pty.ended().success());
}

#[test]
fn an_origin_is_paused_and_gets_other_values_for_a_while() {
    let gateway = Gateway::start();
    let file = gateway.folder.path().join("gateway.toml");
    let (zone, gate) = (
        "[zones.per_client]",
        "rate = \"200r/s\"\nmax_in_flight = 24\n",
    );
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace(zone, &format!("{gate}{zone}"))).unwrap();
    let address = format!("127.0.0.1:{}", gateway.ports[1]);
    let mut pty = Pty::top(&address, (160, 48));
    pty.wait_for(&["connected", "> per_client", "rate 200r/s"]);
    pty.press("m");
    pty.wait_for(&["select an origin first"]);
    pty.press("\t\t\tp\r");
    pty.wait_for(&["origin app", "No request of app leaves for 10m"]);
    pty.press("y");
    pty.wait_for(&["Pause: done", "not as in the file: paused"]);
    pty.press("py");
    pty.wait_for(&["Resume: done"]);
    pty.press("r250r/s 1h\r");
    pty.wait_for(&["The gate of app gets 250r/s for 1h."]);
    pty.press("y");
    pty.wait_for(&[
        "Set the rate: done",
        "rate 250r/s",
        "not as in the file: 250r/s",
    ]);
    pty.press("m30\ry");
    pty.wait_for(&["Set the places: done", "30 (file: 24)", "30 places"]);
    pty.press("d");
    pty.wait_for(&["a gate has no dry run"]);
    pty.press("uy");
    pty.wait_for(&["Undo: done"]);
    pty.press("q");
    assert!(pty.ended().success());
}

#[test]
fn a_key_is_forgotten_with_who_waits() {
    let gateway = Gateway::start();
    let address = format!("127.0.0.1:{}", gateway.ports[1]);
    let mut pty = Pty::top(&address, (120, 36));
    pty.wait_for(&["connected", "> per_client"]);
    pty.press("f");
    pty.wait_for(&["select a key first"]);
    pty.press("\t\t");
    pty.wait_for(&["▸ deepest keys"]);
    pty.press("f");
    pty.wait_for(&["no key is listed"]);
    let mut crowd = gateway.crowd(30);
    pty.wait_for(&["per_client, 127.0.0.1"]);
    pty.press("F");
    pty.wait_for(&["key 127.0.0.1 in per_client", "Forget and reject? y / n"]);
    pty.press("y");
    pty.wait_for(&["Forget and reject: done", "nobody waits"]);
    let mut rejected = 0;
    for stream in &mut crowd {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        rejected += usize::from(answer.starts_with("HTTP/1.1 503"));
    }
    // At 1r/s some may have left before.
    assert!((10..30).contains(&rejected), "{rejected}");
    pty.press("q");
    assert!(pty.ended().success());
}

#[test]
fn a_gateway_with_a_token_wants_it() {
    let gateway = Gateway::start_with(&[("DRIP_ADMIN_TOKEN", "secret")]);
    let address = format!("127.0.0.1:{}", gateway.ports[1]);
    let mut pty = Pty::top(&address, (120, 36));
    pty.wait_for(&["connected", "> per_client"]);
    pty.press("p\ry");
    pty.wait_for(&["Pause: ", "DRIP_ADMIN_TOKEN"]);
    pty.press("q");
    assert!(pty.ended().success());
    let mut pty = Pty::top_with(&address, (120, 36), &[("DRIP_ADMIN_TOKEN", "secret")]);
    pty.wait_for(&["connected", "> per_client"]);
    pty.press("p\ry");
    pty.wait_for(&["Pause: done"]);
    pty.press("q");
    assert!(pty.ended().success());
}
