//! The scene `smooth`: requests arrive in bursts and leave in an even stream.

use std::cell::Cell;
use std::fs;
use std::io;
use std::time::Duration;

use limit::Moment;

use super::config_file::ConfigFile;
use super::crowd::Crowd;
use super::pace::Pace;
use super::picture::{HEADING, Picture, milliseconds, say};
use super::stage::{self, InForce, SceneClock, next_gateway};
use super::tally::{Second, Tally};
use crate::sample_file;

/// Number of lines between two headings, so that one is always visible.
const HEADING_EVERY: u64 = 20;

/// Plays the scene until it is interrupted.
pub(super) async fn play() -> io::Result<()> {
    let file = ConfigFile::create(|addresses| {
        let [gateway, admin] = [addresses.gateway, addresses.admin].map(|it| it.to_string());
        sample_file::with_addresses(&gateway, &admin, &format!("http://{}", addresses.origin))
    })?;
    let tally = Tally::default();
    let seconds = Cell::new(0);
    let scene = |in_force| run(&file, in_force, &tally, &seconds);
    Box::pin(stage::play(&file, tally.clone(), scene)).await?;
    // Adds the last, incomplete second to the total.
    tally.with(|counts| counts.next_second(Moment::default()));
    say(format!(
        "\n{}\nnext: `drip demo --scene fair` shows a backend that one client floods and nine do not\n\
         to keep a file like this one: `drip init`",
        summary(seconds.get(), &tally.with(|counts| counts.total))
    ))
}

/// Sends the clients' requests, and prints one line for each second.
///
/// `seconds`: number of lines printed so far.
async fn run(
    file: &ConfigFile,
    mut in_force: InForce,
    tally: &Tally,
    seconds: &Cell<u64>,
) -> io::Result<()> {
    let picture = Picture::of_stdout();
    let gateway = in_force.borrow_and_update().clone();
    let pace = gateway.and_then(|gateway| Pace::of(gateway.settings()));
    // The file of the demo has a limit.
    let Some(mut pace) = pace else { return Ok(()) };
    say(introduction(file, pace))?;
    say(picture.rate_hint(&rate_location(file), pace))?;
    let crowd = Crowd::new(file.addresses.gateway, tally.clone());
    let mut scene_clock = SceneClock::start().await;
    tally.with(|counts| {
        counts.retune(pace.rate.interval());
        counts.next_second(scene_clock.began)
    });
    crowd.send_burst(0);
    loop {
        tokio::select! {
            (tenth, has_second_ended) = scene_clock.next() => {
                if has_second_ended {
                    let next = scene_clock.began + Duration::from_secs(scene_clock.seconds);
                    let ended = tally.with(|counts| counts.next_second(next));
                    if seconds.get().is_multiple_of(HEADING_EVERY) {
                        say(HEADING)?;
                    }
                    seconds.set(seconds.get() + 1);
                    say(picture.line(seconds.get(), &ended, pace))?;
                }
                crowd.send_burst(tenth);
            }
            gateway = next_gateway(&mut in_force) => {
                let saved = rate_location(file);
                let (old, new) = (pace.rate, Pace::of(gateway.settings()));
                let effect = match new {
                    Some(new) if new.rate == old => format!("; the rate is still {old}"),
                    Some(new) => format!(": {old} is now {}", new.rate),
                    None => "; its first route has no limits now".to_owned(),
                };
                say(picture.note(&format!("{saved} was saved and is in force{effect}")))?;
                if let Some(new) = new {
                    pace = new;
                    tally.with(|counts| counts.retune(pace.rate.interval()));
                }
            }
        }
    }
}

/// Formats the location of the rate: the file, and the number of its first line with a rate.
fn rate_location(file: &ConfigFile) -> String {
    let text = fs::read_to_string(&file.path).unwrap_or_default();
    let line = text.lines().position(|line| line.starts_with("rate"));
    let line = line.map_or(String::new(), |line| format!(":{}", line + 1));
    format!("{}{line}", file.path.display())
}

/// Formats an introduction for new users.
fn introduction(file: &ConfigFile, Pace { rate, burst }: Pace) -> String {
    let every = milliseconds(rate.interval().as_secs_f64(), 0);
    let addresses = file.addresses;
    format!(
        "drip demo: bursts in, an even stream out\n\n\
         \x20 a crowd      sends up to 30 requests at once to the gateway\n\
         \x20 the gateway  lets one go on every {every}; up to {burst} wait, the rest get 429\n\
         \x20 an origin    stands in for your backend and times what reaches it\n\
         \x20 try it       http://{}/ is the gateway, http://{}/ its live page\n\
         \x20 a bar below  is a tenth of a second: ▁ one request, █ eight or more\n",
        addresses.gateway, addresses.admin
    )
}

/// Formats the summary at the end.
fn summary(seconds: u64, total: &Second) -> String {
    let [sent, reached] = [total.sent, total.reached].map(|tenths| tenths.iter().sum::<u32>());
    let failed = match total.failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let pace = total
        .gaps
        .evenness()
        .map_or(String::new(), |(_, deviation)| {
            let deviation = milliseconds(deviation, 2);
            format!("; while some waited, departures kept the pace to ±{deviation}")
        });
    format!(
        "{seconds} s: {sent} arrived, {reached} left, {} rejected, {} still waiting{failed}{pace}",
        total.rejected, total.waiting
    )
}
