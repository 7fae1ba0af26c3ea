//! Outages of an origin: no server can be reached, and requests wait at the gate for the end.
//!
//! Only an origin with `hold` in the file has outages: its requests wait for at most that time.
//! Each outage has a [`Recovery`], which tries to reach the servers until one accepts a connection.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use config::Http2;
use foldhash::fast::RandomState;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use limit::Moment;
use tokio::time::sleep;

use super::dial::Dialer;
use super::error::OriginError;
use super::health::MaxFails;
use super::server::Server;
use super::servers::Origin;
use super::shortage;
use crate::gate::OriginGate;
use crate::time::clock;

/// Average pause before the first attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest average pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_millis(500);

impl Origin {
    /// Begins an outage, as no server could be reached: the gate releases nothing until one is.
    ///
    /// # Errors
    ///
    /// Returns the error if requests are not held because of it.
    pub fn begin_outage(&self, error: OriginError) -> Result<(), OriginError> {
        let Some(gate) = &self.gate else {
            return Err(error);
        };
        if !self.settings.holds() || !error.is_unreachable() {
            return Err(error);
        }
        let new_outage = gate.begin_outage(&self.settings.name, self.version, error)?;
        if let Some(outage) = new_outage {
            let recovery = Recovery {
                settings: self.settings.clone(),
                gate: Arc::clone(gate),
                outage,
                servers: self.servers.clone(),
                dialer: self.dialer.clone(),
                max_fails: self.failures.max_fails,
            };
            actix_rt::spawn(recovery.run());
        }
        Ok(())
    }

    /// Checks whether a request that could not be sent because of `error` may wait at the gate.
    ///
    /// Begins an outage, unless all servers are only full. `held_since`: instant at which the
    /// request first could not be sent.
    ///
    /// # Errors
    ///
    /// Returns the error if such an error does not end by itself, or if `hold` is over. If all
    /// servers are only full, `queue_timeout` applies instead of `hold`.
    pub fn check_hold(&self, error: OriginError, held_since: Moment) -> Result<(), OriginError> {
        let limit = if error.is_full() {
            self.settings.queue_timeout
        } else {
            self.settings.hold
        };
        if clock::now() >= held_since + limit {
            return Err(error);
        }
        if error.is_full() {
            return Ok(());
        }
        self.begin_outage(error)
    }
}

/// Repeated attempts to reach an origin while requests wait for it.
///
/// Each outage has one recovery, however many requests wait. Dropping it ends the outage, so that
/// the next request finds out whether the origin can be reached.
struct Recovery {
    settings: config::Origin,
    gate: Arc<OriginGate>,
    /// Number of the outage at the gate.
    outage: u64,
    servers: Vec<Arc<Server>>,
    dialer: Dialer,
    max_fails: MaxFails,
}

impl Recovery {
    /// Runs until the outage is over, or no request waits for its end.
    async fn run(self) {
        let mut pause = FIRST_PAUSE;
        loop {
            sleep(jittered(pause)).await;
            pause = (pause * 3 / 2).min(MAX_PAUSE);
            // Without an error: only asks whether the outage lasts and requests wait.
            if !self.gate.continue_outage(self.outage, None) {
                return;
            }
            let error = match self.try_all().await {
                Ok(()) => break,
                Err(error) => error,
            };
            if !self.gate.continue_outage(self.outage, error) {
                return;
            }
        }
        if let Some((lasted, waiting)) = self.gate.end_outage(self.outage) {
            let events = self.gate.events();
            events.outage_over(&self.settings.name, lasted, waiting, clock::now());
        }
    }

    /// Tries all servers that may be back, at once, until one is reached.
    ///
    /// A failure counts like that of a request, because no request reaches the servers meanwhile.
    ///
    /// # Errors
    ///
    /// Returns the last error if no server was reached; `None` if no server may be back.
    async fn try_all(&self) -> Result<(), Option<OriginError>> {
        let now = clock::now();
        let candidates = self.servers.iter();
        let candidates = candidates.filter(|server| server.may_be_back(now));
        let attempt = async |server: &Server| {
            let (began, limit) = (clock::now(), self.settings.connect_timeout);
            let may_choose = server.url().is_encrypted() && self.settings.http2 == Http2::Auto;
            let open = async || self.dialer.open(server.url(), may_choose).await;
            let opened = shortage::open_within(limit, server.url(), open).await;
            let now = clock::now();
            match &opened {
                Ok(_) => server.note_reached(),
                Err(error) if error.is_own() => {}
                Err(error) => {
                    server.note_no_answer(error, Some(self.max_fails), now.since(began), now);
                }
            }
            opened.map(drop)
        };
        let mut attempts: FuturesUnordered<_> = candidates.map(|it| attempt(it)).collect();
        let mut last_error = None;
        while let Some(tried) = attempts.next().await {
            match tried {
                Ok(()) => return Ok(()),
                Err(error) => last_error = Some(error),
            }
        }
        Err(last_error)
    }
}

impl Drop for Recovery {
    fn drop(&mut self) {
        self.gate.end_outage(self.outage);
    }
}

/// Returns `pause` plus or minus up to a fifth, so that many gateways do not connect at once.
fn jittered(pause: Duration) -> Duration {
    // A new state has random keys, so the hash is a random number: here from 0 to 400.
    let random = RandomState::default().hash_one(0_u8) % 401;
    let thousandths = 800 + u32::try_from(random).unwrap_or_default();
    pause * thousandths / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_up_to_a_fifth_early_or_late_and_differ() {
        let pauses: Vec<_> = (0..200).map(|_| jittered(FIRST_PAUSE)).collect();
        let (least, most) = (pauses.iter().min().unwrap(), pauses.iter().max().unwrap());
        let is_near = *least >= FIRST_PAUSE * 4 / 5 && *most <= FIRST_PAUSE * 6 / 5;
        assert!(is_near, "{least:?} {most:?}");
        assert!(*most > *least + FIRST_PAUSE / 10, "{least:?} {most:?}");
    }
}
