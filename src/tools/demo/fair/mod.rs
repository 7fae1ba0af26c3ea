//! The scene `fair`: one client floods the gate of an origin, and nine send few requests.
//!
//! It has two parts. In the first, all requests wait in one queue. Then the file is saved with
//! `share`, and in the second part clients take turns.

mod clients;
mod score;
mod screen;

use std::io;

use gateway::time::clock;

use self::clients::Clients;
use self::score::Score;
use super::own_file::{Addresses, OwnFile};
use super::stage::{self, InForce, SceneClock, next_gateway};
use super::tally::Tally;

/// Duration of each part in seconds.
const SECONDS: u64 = 8;

/// The line that the second part adds to the file.
const SHARE: &str = "share = \"per_client\"";

/// The pace of the gate, and the longest wait there.
const RATE: &str = "50r/s";
const QUEUE_TIMEOUT: &str = "2s";

/// Plays the scene to its end, or until it is interrupted.
pub(super) async fn play() -> io::Result<()> {
    let file = OwnFile::create(|addresses| text(addresses, ""))?;
    let reached = Tally::default();
    let (without, with) = (Score::default(), Score::default());
    let scene = |in_force| show(&file, in_force, &reached, [&without, &with]);
    stage::play(&file, reached.clone(), scene).await?;
    screen::summary(&without.total(), &with.total())
}

/// Sends the clients' requests, and shows the result as one line per second.
///
/// A request counts in the part in which it is sent. So requests that still wait when the file is
/// saved do not blur the second part.
async fn show(
    file: &OwnFile,
    mut in_force: InForce,
    reached: &Tally,
    [without, with]: [&Score; 2],
) -> io::Result<()> {
    let clients = Clients::new(file.addresses.gateway);
    screen::introduction(file)?;
    let mut beat = SceneClock::start().await;
    let mut end = SECONDS;
    let (mut score, mut is_shared) = (without, false);
    clients.send(0, score);
    loop {
        tokio::select! {
            (tenth, has_second_ended) = beat.next() => {
                if has_second_ended {
                    let second = reached.with(|counts| counts.next_second(clock::now()));
                    let count = second.reached.iter().sum();
                    screen::line(beat.seconds, &score.next_second(), count)?;
                    match (beat.seconds >= end, is_shared) {
                        (true, true) => return Ok(()),
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
                    end = beat.seconds + SECONDS;
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
