//! Attempts to reach an origin during an outage, until a server accepts a connection.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use config::Http2;
use foldhash::fast::RandomState;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::sleep;

use super::dial::Dialer;
use super::error::OriginError;
use super::health::MaxFails;
use super::server::Server;
use super::shortage;
use crate::gate::OriginGate;
use crate::time::clock;

/// Average pause before the first attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest average pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// Repeated attempts to reach an origin while requests wait for it.
///
/// Each outage has one recovery, however many requests wait. Dropping it ends the outage, so that
/// the next request finds out whether the origin works.
pub(super) struct Recovery {
    pub(super) settings: config::Origin,
    pub(super) gate: Arc<OriginGate>,
    /// Number of the outage at the gate.
    pub(super) outage: u64,
    pub(super) servers: Vec<Arc<Server>>,
    pub(super) dialer: Dialer,
    pub(super) max_fails: MaxFails,
}

impl Recovery {
    /// Runs until the outage is over, or no request waits for its end.
    pub(super) async fn run(self) {
        let mut pause = FIRST_PAUSE;
        loop {
            sleep(jittered(pause)).await;
            pause = (pause * 3 / 2).min(MAX_PAUSE);
            // No attempt is needed if no request waits.
            if !self.gate.is_still_out(self.outage, None) {
                return;
            }
            let error = match self.try_all().await {
                Ok(()) => break,
                Err(error) => error,
            };
            if !self.gate.is_still_out(self.outage, error) {
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
    /// Returns the last error; `None` if no server may be back.
    async fn try_all(&self) -> Result<(), Option<OriginError>> {
        let now = clock::now();
        let servers = self.servers.iter();
        let servers = servers.filter(|server| server.may_be_back(now));
        let attempt = async |server: &Server| {
            let (began, limit) = (clock::now(), self.settings.connect_timeout);
            let may_choose = server.url().is_encrypted() && self.settings.http2 == Http2::Auto;
            let open = async || self.dialer.open(server.url(), may_choose).await;
            let opened = shortage::open_within(limit, server.url(), open).await;
            let now = clock::now();
            match &opened {
                Ok(_) => server.reached(),
                Err(error) if error.is_own() => {}
                Err(error) => server.failed(error, Some(self.max_fails), now.since(began), now),
            }
            opened.map(drop)
        };
        let mut attempts: FuturesUnordered<_> = servers.map(|it| attempt(it)).collect();
        let mut last = None;
        while let Some(tried) = attempts.next().await {
            match tried {
                Ok(()) => return Ok(()),
                Err(error) => last = Some(error),
            }
        }
        Err(last)
    }
}

impl Drop for Recovery {
    fn drop(&mut self) {
        self.gate.end_outage(self.outage);
    }
}

/// Returns `pause` plus or minus up to a fifth, so that many gateways do not connect at once.
fn jittered(pause: Duration) -> Duration {
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
