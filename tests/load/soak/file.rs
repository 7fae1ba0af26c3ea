//! Files of the gateway in the soak: calm ones, random ones, and a thread that changes them.

use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::Gateway;
use crate::support::rng::Rng;

/// A route of the file, and its origin.
#[derive(Debug)]
pub struct Route {
    pub path: &'static str,
    pub origin: &'static str,
    pub reject_status: u16,
}

const fn route(path: &'static str, origin: &'static str, reject_status: u16) -> Route {
    Route {
        path,
        origin,
        reject_status,
    }
}

/// The two routes. The second has no limits, so only its gate rejects requests.
pub const ROUTES: [Route; 2] = [route("/", "app", 429), route("/open", "side", 420)];

/// The longest `queue_timeout` of any file.
pub const LONGEST_QUEUE: Duration = Duration::from_secs(1);

/// Fields of a gate that lets everything through at once.
const CALM: &str = "max_in_flight = 1000\nqueue_timeout = \"400ms\"";

/// Returns a file with the zone's `limit`, and fields of each origin and route.
fn file(servers: &[SocketAddr], rate: u64, limit: &str, fields: [(String, String); 2]) -> String {
    let servers: Vec<_> = servers.iter().map(|at| format!("http://{at}")).collect();
    let (mut origins, mut routes) = (String::new(), String::new());
    for (route, (gate, more)) in ROUTES.iter().zip(fields) {
        let (path, name, status) = (route.path, route.origin, route.reject_status);
        origins += &format!(
            "[origins.{name}]\nservers = {servers:?}\nresponse_timeout = \"1500ms\"\nmax_fails = 3\n\
             fail_timeout = \"1s\"\n{gate}\n"
        );
        let limits = match path {
            "/" => format!("limits = [{{ zone = \"z\", {limit} }}]\n"),
            _ => String::new(),
        };
        routes += &format!(
            "[[routes]]\npath = \"{path}\"\norigin = \"{name}\"\nreject_status = {status}\n{more}\n{limits}"
        );
    }
    format!(
        "workers = 2\nshutdown_timeout = \"5s\"\n{origins}[zones.z]\nkey = \"$arg_key\"\nrate = \"{rate}r/s\"\n\
         [zones.keys]\nkey = \"$arg_key\"\nrate = \"1r/s\"\n{routes}[log]\nlevel = \"debug\"\naccess = \"access.log\"\n"
    )
}

/// Returns a file with all servers, and limits that are seldom reached.
pub fn calm(servers: &[SocketAddr]) -> String {
    let fields = [(); 2].map(|()| (CALM.to_owned(), String::new()));
    file(servers, 60, "burst = 20", fields)
}

/// Returns a file with a single permit for each origin, and a limit that is never reached.
pub fn one_permit_each(server: SocketAddr) -> String {
    let gate = "max_in_flight = 1\nqueue_timeout = \"10s\"\nkeep_alive = 0";
    let fields = [(); 2].map(|()| (gate.to_owned(), String::new()));
    file(&[server], 10_000, "burst = 1000, nodelay = true", fields)
}

/// Returns a file with some servers, and any gates and limits.
fn random(rng: &mut Rng, servers: &[SocketAddr]) -> String {
    let burst = rng.within(0, 30);
    let mut limit = format!("burst = {burst}");
    if rng.percent(30) {
        limit += &format!(", delay = {}", rng.within(0, burst + 1));
    }
    let (first, count) = (rng.pick(&[0, 1, 2]), rng.pick(&[2, 3, 4]));
    let some = servers.iter().cycle().skip(first).take(count).copied();
    let some: Vec<_> = some.collect();
    let rate = rng.within(15, 150);
    file(&some, rate, &limit, [(); 2].map(|()| gate(rng)))
}

/// Returns fields of an origin, and of its route.
fn gate(rng: &mut Rng) -> (String, String) {
    let has_gate = rng.percent(85);
    let queue = rng.pick(&[1, 2, 5, 10, 100]);
    let max_queue = rng.pick(&[1, 4, 12, 10_000]);
    let timeout = rng.pick(&[0, 30, 200, 400, 1000]);
    let mut gate =
        format!("queue = {queue}\nmax_queue = {max_queue}\nqueue_timeout = \"{timeout}ms\"");
    if has_gate && rng.percent(60) {
        gate += &format!("\nrate = \"{}r/s\"", rng.pick(&[50, 70, 150, 500, 2000]));
    }
    if has_gate && rng.percent(50) {
        gate += &format!("\nmax_in_flight = {}", rng.within(1, 12));
    }
    if rng.percent(60) {
        gate += &format!("\nshare = \"{}\"", rng.pick(&["z", "keys"]));
    }
    let mut route = String::new();
    if rng.percent(25) {
        route = format!("max_wait = \"{}ms\"", rng.pick(&[10, 100, 500]));
    }
    if has_gate && rng.percent(40) {
        let name = rng.pick(&["on", "on", "shadow"]);
        let slow = rng.pick(&["none", "100ms", "300ms"]);
        let on = rng.pick(&["[\"503\", \"timeout\", \"connect\"]", "[\"5xx\"]"]);
        let floor = rng.pick(&["10%", "50%"]);
        gate += &format!(
            "\nbackoff = {{ mode = \"{name}\", slow = \"{slow}\", on = {on}, floor = \"{floor}\", max_pause = \"700ms\" }}"
        );
    }
    (gate, route)
}

/// Rewrites the file every few hundred milliseconds until stopped. Returns the number of changes.
///
/// The last file is calm again.
pub fn rewrite(gateway: &Gateway, servers: &[SocketAddr], seed: u64, stop: &AtomicBool) -> u32 {
    let mut rng = Rng::of(seed, 500);
    let mut changes = 0;
    while !stop.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(rng.within(150, 600)));
        if rng.percent(15) {
            let broken = rng.pick(&["[server\n", "[zones.z]\nrate = 3\n", "brust = 7\n", ""]);
            save(gateway, broken, &mut rng);
            // This write changed nothing, and the next file is a valid one.
            continue;
        }
        let text = random(&mut rng, servers);
        save(gateway, &gateway.site.text(&text), &mut rng);
        changes += 1;
    }
    save(gateway, &gateway.site.text(&calm(servers)), &mut rng);
    changes
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
