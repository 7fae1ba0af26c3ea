use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::soak::board::{Board, Trouble};
use crate::support::rng::Rng;
use crate::support::{Gateway, now};

/// How long after it was written a file is surely in force, on a busy machine too.
const IN_FORCE: Duration = Duration::from_secs(1);

/// The settings that change.
#[derive(Clone, Debug)]
pub struct Terms {
    pub rate: u64,
    pub burst: u64,
    pub delay: Option<u64>,
    pub max_in_flight: u64,
    pub servers: Vec<SocketAddr>,
}

impl Terms {
    /// Calm: all servers, and a limit that is seldom reached.
    pub fn calm(servers: &[SocketAddr]) -> Self {
        Self {
            rate: 60,
            burst: 20,
            delay: None,
            max_in_flight: 0,
            servers: servers.to_vec(),
        }
    }

    fn random(rng: &mut Rng, all: &[SocketAddr]) -> Self {
        let burst = rng.within(0, 30);
        let first = rng.pick(&[0, 1, 2]);
        let count = usize::try_from(rng.within(2, 5)).expect("few");
        Self {
            rate: rng.within(15, 150),
            burst,
            delay: rng
                .percent(30)
                .then(|| rng.within(0, burst.saturating_add(1))),
            max_in_flight: if rng.percent(25) {
                rng.within(1, 12)
            } else {
                0
            },
            servers: all
                .iter()
                .cycle()
                .skip(first)
                .take(count.min(all.len()))
                .copied()
                .collect(),
        }
    }

    pub fn text(&self) -> String {
        let Self {
            rate,
            burst,
            max_in_flight,
            ..
        } = self;
        let servers: Vec<_> = self
            .servers
            .iter()
            .map(|at| format!("\"http://{at}\""))
            .collect();
        let servers = servers.join(", ");
        let delay = self
            .delay
            .map_or(String::new(), |delay| format!(", delay = {delay}"));
        format!(
            r#"
workers = 2
shutdown_timeout = "5s"

[origins.app]
servers = [{servers}]
max_in_flight = {max_in_flight}
queue_timeout = "400ms"
response_timeout = "1500ms"
max_fails = 3
fail_timeout = "1s"

[zones.z]
key = "$arg_key"
rate = "{rate}r/s"

[[routes]]
path = "/"
origin = "app"
limits = [{{ zone = "z", burst = {burst}{delay} }}]

[[routes]]
path = "/open"
origin = "app"

[log]
level = "debug"
"#
        )
    }
}

/// Rewrites the file every few hundred milliseconds, in several ways, until it is told to stop. Then it is calm again.
/// How often it was changed.
pub fn rewrite(
    gateway: &Gateway,
    servers: &[SocketAddr],
    seed: u64,
    board: &Arc<Board>,
    stop: &AtomicBool,
) -> u32 {
    let mut rng = Rng::of(seed, 500);
    let mut crowded = Crowded { board, ends: None };
    let mut changes = 0;
    while !stop.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(rng.within(150, 600)));
        if rng.percent(15) {
            let broken = rng.pick(&["[server\n", "[zones.z]\nrate = 3\n", "brust = 7\n", ""]);
            save(gateway, broken, &mut rng);
            // Nothing has changed, and the next file is a good one.
            continue;
        }
        let terms = Terms::random(&mut rng, servers);
        crowded.follow(&terms);
        save(gateway, &gateway.site.text(&terms.text()), &mut rng);
        changes += 1;
    }
    let calm = Terms::calm(servers);
    save(gateway, &gateway.site.text(&calm.text()), &mut rng);
    thread::sleep(IN_FORCE);
    crowded.end();
    changes
}

/// Tells the board while few requests may be at the origin, and for a moment after: the file is read a little later.
struct Crowded<'a> {
    board: &'a Board,
    ends: Option<std::time::Instant>,
}

impl Crowded<'_> {
    fn follow(&mut self, terms: &Terms) {
        if terms.max_in_flight > 0 {
            if self.ends.is_none() {
                self.board.trouble_begins(Trouble::Crowded, 0);
            }
            self.ends = Some(now() + Duration::from_secs(3600 * 24 * 365));
        } else if let Some(ends) = self.ends {
            if ends > now() + IN_FORCE {
                self.ends = Some(now() + IN_FORCE);
            } else if ends < now() {
                self.end();
            }
        }
    }

    fn end(&mut self) {
        if self.ends.take().is_some() {
            self.board.trouble_ends(Trouble::Crowded, 0);
        }
    }
}

fn save(gateway: &Gateway, text: &str, rng: &mut Rng) {
    let file = gateway.site.file();
    if rng.percent(50) {
        let draft = gateway.site.folder().join(".gateway.toml.swp");
        fs::write(&draft, text).expect("a file");
        fs::rename(draft, file).expect("a file");
    } else {
        fs::write(file, text).expect("a file");
    }
    if rng.percent(25) {
        gateway.signal(Signal::HUP);
    }
}
