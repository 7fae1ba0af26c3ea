//! The scene `fair`: one client floods the gate of an origin, and nine send few requests.
//!
//! The gate is the limit in front of the origin. In the first part of the scene, all requests wait
//! in one queue. Then the file is saved with `share`, and in the second part clients take turns.
//! `clients` sends requests, `score` counts their results, and `screen` prints them.

mod clients;
mod score;
mod screen;

use std::io;

use gateway::time::clock;

use self::clients::Clients;
use self::score::Score;
use super::config_file::{Addresses, ConfigFile};
use super::stage::{self, InForce, SceneClock, next_gateway};
use super::tally::Tally;

/// Duration of each part in seconds.
const SECONDS: u64 = 8;

/// The line that the second part adds to the file.
const SHARE: &str = "share = \"per_client\"";

/// Rate of the gate, and the longest wait in its queue.
const RATE: &str = "50r/s";
const QUEUE_TIMEOUT: &str = "2s";

/// Plays the scene to its end, or until it is interrupted.
pub(super) async fn play() -> io::Result<()> {
    let file = ConfigFile::create(|addresses| text(addresses, ""))?;
    let reached = Tally::default();
    let (without, with) = (Score::default(), Score::default());
    let scene = |in_force| run(&file, in_force, &reached, [&without, &with]);
    stage::play(&file, reached.clone(), scene).await?;
    screen::summary(&without.total(), &with.total())
}

/// Sends the clients' requests, and prints one line for each second.
///
/// `reached`: counts of the requests that reached the origin. `without` and `with`: the scores of
/// the parts without and with `share`.
///
/// A request counts in the part in which it is sent. So requests that still wait when the file is
/// saved do not blur the second part.
async fn run(
    file: &ConfigFile,
    mut in_force: InForce,
    reached: &Tally,
    [without, with]: [&Score; 2],
) -> io::Result<()> {
    let clients = Clients::new(file.addresses.gateway);
    screen::introduction(file)?;
    let mut scene_clock = SceneClock::start().await;
    // Number of the second at which the current part ends.
    let mut end = SECONDS;
    let (mut score, mut is_shared) = (without, false);
    clients.send(0, score);
    loop {
        tokio::select! {
            (tenth, has_second_ended) = scene_clock.next() => {
                if has_second_ended {
                    let second = reached.with(|counts| counts.next_second(clock::now()));
                    let count = second.reached.iter().sum();
                    screen::line(scene_clock.seconds, &score.next_second(), count)?;
                    match (scene_clock.seconds >= end, is_shared) {
                        (true, true) => return Ok(()),
                        // Once a second, until the gateway has read the file.
                        (true, false) => file.save(&text(&file.addresses, &format!("{SHARE}\n")))?,
                        (false, _) => {}
                    }
                }
                clients.send(tenth, score);
            }
            gateway = next_gateway(&mut in_force) => {
                let mut origins = gateway.settings().origins.iter();
                if !is_shared && origins.any(|origin| origin.share.is_some()) {
                    (score, is_shared) = (with, true);
                    end = scene_clock.seconds + SECONDS;
                    screen::shared(file)?;
                }
            }
        }
    }
}

/// Returns the text of the file. `share`: the line that the second part adds.
fn text(addresses: &Addresses, share: &str) -> String {
    let (gateway, admin, origin) = (addresses.gateway, addresses.admin, addresses.origin);
    format!(
        "[server]\nlisten = [\"{gateway}\"]\nadmin = \"{admin}\"\n\n\
         [origins.app]\nservers = [\"http://{origin}\"]\n\
         rate = \"{RATE}\"\nqueue_timeout = \"{QUEUE_TIMEOUT}\"\n{share}\n\
         # The gate shares by the key of this zone. No route limits by its rate.\n\
         [zones.per_client]\nkey = \"$remote_addr\"\nrate = \"{RATE}\"\n\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n\n\
         # Requests that the end of the scene cuts off are no news.\n\
         [log]\nlevel = \"error\"\n"
    )
}
