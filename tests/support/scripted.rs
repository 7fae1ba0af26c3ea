//! An origin whose responses are chosen by the target of the request.

use std::collections::HashMap;
use std::fmt::Write;
use std::io;
use std::sync::{Arc, Condvar, Mutex};

use jiff::{Timestamp, ToSpan};

use crate::support::{Exchange, Origin, PATIENCE};

/// Response to a request: the status, and lines of fields.
///
/// `{-60}` in a field is the date of a minute before the response is sent.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    pub status: u16,
    pub fields: &'static str,
}

/// An origin that answers each target by its script.
///
/// Its body and the field `X-Nth` count the requests for the target: `answer 1 to /x`.
pub struct Scripted {
    pub origin: Origin,
    held: Hold,
}

/// Holds all responses until it is opened.
#[derive(Clone, Default)]
pub struct Hold(Arc<(Mutex<bool>, Condvar)>);

impl Hold {
    pub fn wait(&self) {
        let is_open = self.0.0.lock().expect("no panic");
        let waited = self
            .0
            .1
            .wait_timeout_while(is_open, PATIENCE, |is_open| !*is_open);
        drop(waited.expect("no panic"));
    }

    pub fn open(&self) {
        *self.0.0.lock().expect("no panic") = true;
        self.0.1.notify_all();
    }

    pub fn close(&self) {
        *self.0.0.lock().expect("no panic") = false;
    }
}

impl Scripted {
    /// Starts an origin that answers at once. `script` chooses the response by the target.
    pub fn start(script: impl Fn(&str) -> Script + Send + Sync + 'static) -> Self {
        let scripted = Self::holding(script);
        scripted.open();
        scripted
    }

    /// Starts an origin that holds the first request of each target until it is opened.
    pub fn holding(script: impl Fn(&str) -> Script + Send + Sync + 'static) -> Self {
        let held = Hold::default();
        let of_origin = held.clone();
        let asked = Mutex::new(HashMap::<String, usize>::new());
        let origin = Origin::answering(move |exchange: &mut Exchange| {
            let target = exchange.target().to_owned();
            let nth = {
                let mut asked = asked.lock().expect("no panic");
                let nth = asked.entry(target.clone()).or_default();
                *nth += 1;
                *nth
            };
            exchange.body()?;
            if nth == 1 {
                of_origin.wait();
            }
            let body = format!("answer {nth} to {target}");
            respond(exchange, script(&target), nth, &body)
        });
        Self { origin, held }
    }

    /// Releases all held responses.
    pub fn open(&self) {
        self.held.open();
    }

    /// Returns the number of requests for this target.
    pub fn asked(&self, target: &str) -> usize {
        let arrivals = self.origin.arrivals();
        arrivals.iter().filter(|it| it.target == target).count()
    }
}

/// Sends the nth response, with this body or its head alone.
fn respond(exchange: &mut Exchange, script: Script, nth: usize, body: &str) -> io::Result<()> {
    let Script { status, fields } = script;
    let mut head = format!("HTTP/1.1 {status} Said\r\nX-Nth: {nth}\r\n");
    for line in fields.lines().map(str::trim).filter(|it| !it.is_empty()) {
        head.push_str(&dated(line));
        head.push_str("\r\n");
    }
    let has_body = !matches!(status, 204 | 304);
    if has_body {
        write!(head, "Content-Length: {}\r\n", body.len()).map_err(io::Error::other)?;
    }
    let is_head = exchange.head.first_line.starts_with("HEAD ");
    let body = if has_body && !is_head { body } else { "" };
    exchange.send(format!("{head}\r\n{body}").as_bytes())
}

/// Replaces each number of seconds in braces by a date.
fn dated(line: &str) -> String {
    let Some((before, rest)) = line.split_once('{') else {
        return line.to_owned();
    };
    let (seconds, after) = rest.split_once('}').expect("a brace that ends");
    let seconds: i64 = seconds.parse().expect("seconds");
    format!("{before}{}{}", date(seconds), dated(after))
}

/// Returns the date `seconds` from now.
fn date(seconds: i64) -> String {
    let at = Timestamp::now() + seconds.seconds();
    at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}
