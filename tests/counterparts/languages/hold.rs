//! A gunicorn that restarts, behind drip and behind haproxy.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::programs::haproxy::Haproxy;
use crate::programs::python::python_with;
use crate::support::hold::held;
use crate::support::{Client, Gateway, alone, eventually, free_address};

/// gunicorn with workers that answer after a while, as users run it.
struct Gunicorn {
    folder: TempDir,
    address: SocketAddr,
    process: Option<Child>,
}

const APP: &str = "import time\n\
    def app(environ, start):\n    time.sleep(0.02)\n    \
    start('200 OK', [('Content-Length', '2')])\n    return [b'ok']\n";

impl Gunicorn {
    fn start() -> Self {
        let folder = TempDir::new().expect("a folder");
        std::fs::write(folder.path().join("app.py"), APP).expect("a file");
        let mut server = Self {
            folder,
            address: free_address(),
            process: None,
        };
        server.start_again();
        server
    }

    fn start_again(&mut self) {
        let process = Command::new(python_with(&["gunicorn==23.0.0"]))
            .args(["-m", "gunicorn", "--workers", "2", "--threads", "20"])
            .args([
                "--graceful-timeout",
                "1",
                "--log-level",
                "critical",
                "--bind",
            ])
            .arg(self.address.to_string())
            .arg("app:app")
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.process = Some(process.expect("gunicorn"));
        eventually("gunicorn listens", || {
            TcpStream::connect(self.address).is_ok()
        });
    }

    /// Stops it as an operator or a supervisor does: at once, with what it was doing.
    fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let id = rustix::process::Pid::from_child(&process);
            // SIGQUIT: a quick shutdown.
            let sent = rustix::process::kill_process(id, rustix::process::Signal::QUIT);
            sent.expect("a process");
            process.wait().expect("a child");
        }
    }
}

impl Drop for Gunicorn {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Sends GETs over so many connections until `is_over`. Returns how many were sent and lost.
fn load(to: SocketAddr, connections: usize, is_over: &Arc<AtomicUsize>) -> (usize, usize) {
    let loads: Vec<_> = (0..connections)
        .map(|_| {
            let is_over = Arc::clone(is_over);
            thread::spawn(move || {
                let (mut sent, mut lost) = (0, 0);
                while is_over.load(SeqCst) == 0 {
                    let Ok(mut client) = Client::try_connect(to) else {
                        thread::sleep(Duration::from_millis(5));
                        continue;
                    };
                    while is_over.load(SeqCst) == 0 {
                        sent += 1;
                        if client.try_get("/").ok() != Some(200) {
                            lost += 1;
                            break;
                        }
                    }
                }
                (sent, lost)
            })
        })
        .collect();
    let sums = loads.into_iter().map(|it| it.join().expect("no panic"));
    sums.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
}

#[test]
fn a_real_gunicorn_that_restarts_costs_no_more_gets_than_behind_haproxy() {
    const RESTARTS: usize = 4;
    let _alone = alone();
    let (mut one, mut two) = (Gunicorn::start(), Gunicorn::start());
    let fields = "hold = \"20s\"\nqueue_timeout = \"30s\"";
    let drip = Gateway::start(&held(&[one.address], fields, ""));
    let haproxy = Haproxy::before(two.address, "    retries 3\n    option redispatch\n");
    let is_over = Arc::new(AtomicUsize::new(0));
    let running = [drip.address(), haproxy.address].map(|to| {
        let is_over = Arc::clone(&is_over);
        thread::spawn(move || load(to, 20, &is_over))
    });
    for _ in 0..RESTARTS {
        thread::sleep(Duration::from_millis(700));
        one.stop();
        two.stop();
        thread::sleep(Duration::from_millis(300));
        one.start_again();
        two.start_again();
    }
    thread::sleep(Duration::from_millis(700));
    is_over.store(1, SeqCst);
    let [drip_load, haproxy_load] = running.map(|it| it.join().expect("no panic"));
    eprintln!("sent and lost: drip {drip_load:?}, haproxy {haproxy_load:?}");
    assert!(drip_load.0 > 20 * RESTARTS, "{drip_load:?}");
    assert!(
        drip_load.1 <= haproxy_load.1,
        "drip {drip_load:?}, haproxy {haproxy_load:?}"
    );
}
