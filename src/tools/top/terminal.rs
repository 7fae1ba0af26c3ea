//! The terminal: draws the page on it, and restores it afterwards.

use std::io;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{MissedTickBehavior, interval};

use super::change::Request;
use super::feed::News;
use super::keys;
use super::model::Model;
use super::page::Page;
use super::view::{Paint, View};
use crate::config::{AdminAddress, AdminTokens};
use crate::remote::client::Client;
use crate::server::signals::Signals;
use crate::time::clock;

/// Durations are shown to the second, so the page is drawn at least once a second.
const SECOND: Duration = Duration::from_secs(1);

/// Restores the terminal when the page ends for any reason.
///
/// After a panic this happens before the report.
pub(super) struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Draws what the feed reports, and acts on typed keys, until told to quit.
pub(super) async fn watch(
    address: &AdminAddress,
    tokens: Rc<AdminTokens>,
    mut feed: Receiver<News>,
    mut model: Model,
) -> io::Result<()> {
    let mut signals = Signals::listen()?;
    let restore = Restore;
    let mut terminal = ratatui::try_init()?;
    let mut input = input();
    let (mut page, paint) = (Page::default(), Paint::wanted());
    let (changer, mut results) = Changer::new(address.clone(), tokens);
    let mut ticks = interval(SECOND);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        draw(
            &mut terminal,
            &View {
                address,
                model: &model,
                page: &page,
                paint,
                now: clock::now(),
            },
        )?;
        tokio::select! {
            Some(news) = feed.recv() => {
                model.hear(news, clock::now());
                // News that came together is drawn together.
                while let Ok(news) = feed.try_recv() {
                    model.hear(news, clock::now());
                }
            }
            event = input.recv() => match event {
                Some(Ok(Event::Key(key))) if page.question.is_some() => {
                    if let Some((verb, request)) = page.answer(key) {
                        changer.send(verb, request);
                    }
                }
                Some(Ok(Event::Key(key))) => {
                    if keys::action(key).is_some_and(|action| !page.act(action, &model)) {
                        break;
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
                None => break,
            },
            Some((verb, result)) = results.recv() => page.tell(verb, result),
            // Any signal ends the page: a terminal that hangs up is gone too.
            _ = signals.next() => break,
            _ = ticks.tick() => {}
        }
    }
    drop(restore);
    Ok(())
}

/// What was done, and why it failed if it did.
type Outcome = (&'static str, Result<(), String>);

/// Sends changes to the gateway.
struct Changer {
    client: Rc<Client>,
    tell: Sender<Outcome>,
}

impl Changer {
    fn new(address: AdminAddress, tokens: Rc<AdminTokens>) -> (Self, Receiver<Outcome>) {
        let (tell, results) = channel(1);
        let client = Rc::new(Client::new(address, tokens));
        (Self { client, tell }, results)
    }

    /// Sends a request, whose result comes later.
    fn send(&self, verb: &'static str, request: Request) {
        let (client, tell) = (Rc::clone(&self.client), self.tell.clone());
        actix_rt::spawn(async move {
            let Request { method, path, body } = request;
            let result = client.send(method, &path, body).await;
            // The page may have ended.
            let _ended = tell.send((verb, result)).await;
        });
    }
}

fn draw(terminal: &mut DefaultTerminal, view: &View) -> io::Result<()> {
    terminal.draw(|frame| view.draw(frame)).map(drop)
}

/// Keyboard input. The thread that reads it ends with the process.
pub(super) fn input() -> Receiver<io::Result<Event>> {
    let (tell, told) = channel(16);
    thread::spawn(move || {
        loop {
            let read = event::read();
            let failed = read.is_err();
            if tell.blocking_send(read).is_err() || failed {
                return;
            }
        }
    });
    told
}
