use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::load::soak::board::Board;
use crate::load::soak::terms::Terms;
use crate::support::Gateway;
use crate::support::rng::Rng;

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
        board.saved(&terms);
        save(gateway, &gateway.site.text(&terms.text()), &mut rng);
        changes += 1;
    }
    let calm = Terms::calm(servers);
    board.saved(&calm);
    save(gateway, &gateway.site.text(&calm.text()), &mut rng);
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
