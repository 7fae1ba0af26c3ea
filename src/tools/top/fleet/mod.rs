//! Several gateways in one picture.
//!
//! | file | what it is |
//! |---|---|
//! | `lines` | the picture as rows |
//! | `page` | what the user has chosen |
//! | `view` | draws both |

mod lines;
mod page;
#[cfg(test)]
mod tests;
mod view;

use std::io::{self, IsTerminal, Write};
use std::rc::Rc;
use std::time::Duration;

use ratatui::crossterm::event::Event;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::{MissedTickBehavior, interval, timeout};

use self::page::{Next, Page};
use super::terminal::{Restore, input};
use super::view::Paint;
use crate::config::{AdminAddress, AdminTokens};
use crate::remote::reader::Reader;
use crate::server::signals::Signals;
use crate::status::fleet::{Members, Reading, Unread};
use crate::time::clock;

/// How often each gateway is read.
const EVERY: Duration = Duration::from_secs(1);

/// Time to wait for all gateways before the first picture. One that is silent is known by then.
const FIRST: Duration = Duration::from_secs(4);

/// What was read of the gateway with this index, or why it could not be read.
type News = (usize, Result<Reading, Unread>);

/// Shows the gateways at `addresses` until told to quit, or once.
pub(super) async fn show(addresses: &[AdminAddress], once: bool) -> io::Result<()> {
    let tokens = AdminTokens::of_environment().map_err(io::Error::other)?;
    let mut feed = listen(addresses, &Rc::new(tokens));
    let mut members = Members::new(addresses.iter().cloned().map(Some));
    let is_once = once || !io::stdout().is_terminal();
    // What gateways send is known after two readings.
    let rounds = if is_once { 2 } else { 1 };
    let mut heard = vec![0; addresses.len()];
    let all = async {
        while heard.iter().any(|times| *times < rounds) {
            let Some((index, read)) = feed.recv().await else {
                return;
            };
            heard[index] += if read.is_ok() { 1 } else { rounds };
            members.hear(index, read, clock::now());
        }
    };
    // Those that were not heard by then are shown as not read yet.
    let _late = timeout(FIRST, all).await;
    if let Some(why) = members.silence().filter(|_| members.are_known()) {
        return Err(io::Error::other(format!("nothing to show: {why}")));
    }
    if !is_once {
        return watch(feed, members).await;
    }
    let mut stdout = io::stdout();
    stdout.write_all(lines::text(&members.picture()).as_bytes())?;
    stdout.flush()
}

/// Reads each gateway once a second.
fn listen(addresses: &[AdminAddress], tokens: &Rc<AdminTokens>) -> Receiver<News> {
    let (tell, told) = channel(64);
    for (index, address) in addresses.iter().enumerate() {
        let mut reader = Reader::new(address.clone(), Rc::clone(tokens));
        let tell = tell.clone();
        actix_rt::spawn(async move {
            let mut ticks = interval(EVERY);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                let read = reader.read().await.map_err(|lost| Unread {
                    kind: lost.kind(),
                    why: lost.to_string(),
                });
                if tell.send((index, read)).await.is_err() {
                    return;
                }
            }
        });
    }
    told
}

async fn watch(mut feed: Receiver<News>, mut members: Members) -> io::Result<()> {
    let mut signals = Signals::listen()?;
    let restore = Restore;
    let mut terminal = ratatui::try_init()?;
    let mut input = input();
    let (mut page, paint) = (Page::default(), Paint::wanted());
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        page.show(members.picture());
        terminal.draw(|frame| view::draw(&mut page, paint, frame))?;
        tokio::select! {
            Some((index, read)) = feed.recv() => {
                members.hear(index, read, clock::now());
                // News that came together is drawn together.
                while let Ok((index, read)) = feed.try_recv() {
                    members.hear(index, read, clock::now());
                }
            }
            event = input.recv() => match event {
                Some(Ok(Event::Key(key))) => {
                    if page.key(key) == Next::Quit {
                        break;
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
                None => break,
            },
            // Any signal ends the page: a terminal that hangs up is gone too.
            _ = signals.next() => break,
            _ = ticks.tick() => {}
        }
    }
    drop(restore);
    Ok(())
}
