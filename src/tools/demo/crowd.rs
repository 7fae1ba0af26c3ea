use std::time::Duration;

use awc::http::{Method, header};
use awc::{Client, ClientRequest, Connector};

use super::aim::Aim;
use super::origin::CROWD;
use super::tally::{Counts, TENTHS, Tally};

/// When bursts come: the tenth within a ten-second round, and the number of requests.
///
/// All requests of a burst come at once. The average is 12.9 requests a second.
const BURSTS: [(u64, usize); 11] = [
    (0, 24),
    (13, 6),
    (21, 18),
    (30, 3),
    (36, 12),
    (44, 1),
    (50, 20),
    (58, 8),
    (70, 30),
    (85, 5),
    (93, 2),
];

const ROUND: u64 = 100;

/// How long after its tenth began a burst is sent.
///
/// At usual rates the departures then fall well inside a tenth, and jitter does not carry them into
/// the next bar.
const INTO_THE_TENTH: Duration = Duration::from_millis(15);

/// Maximum number of requests in flight. At this limit the crowd sends no more.
const MOST_IN_FLIGHT: usize = 256;

/// The clients of the demo.
pub(super) struct Crowd {
    client: Client,
    tally: Tally,
}

impl Crowd {
    pub(super) fn new(tally: Tally) -> Self {
        let connector = Connector::new().limit(MOST_IN_FLIGHT);
        // No timeout: clients wait as long as the queue takes.
        let client = Client::builder()
            .connector(connector)
            .disable_timeout()
            .finish();
        Self { client, tally }
    }

    /// Sends the burst of a tenth, if it has one. Tenths are counted from the start.
    pub(super) fn come(&self, aim: &Aim, tenth: u64) {
        let round = tenth % ROUND;
        let burst = BURSTS
            .iter()
            .find(|(at, _)| *at == round)
            .map_or(0, |(_, burst)| *burst);
        let bar = usize::try_from(tenth).unwrap_or_default() % TENTHS;
        for _ in 0..burst {
            let taken = self.tally.with(|counts| {
                let room = counts.in_flight() < MOST_IN_FLIGHT;
                if room {
                    counts.came(bar);
                }
                room
            });
            if taken {
                actix_rt::spawn(call(self.request(aim), self.tally.clone()));
            }
        }
    }

    fn request(&self, aim: &Aim) -> ClientRequest {
        let method = Method::from_bytes(aim.method.as_bytes()).unwrap_or(Method::GET);
        let url = format!("http://{}{}", aim.gateway, aim.target);
        let request = self
            .client
            .request(method, url)
            .insert_header((header::USER_AGENT, CROWD));
        let fields = aim.headers.iter();
        fields.fold(request, |request, (name, value)| {
            request.append_header((name.as_str(), value.as_str()))
        })
    }
}

async fn call(request: ClientRequest, tally: Tally) {
    tokio::time::sleep(INTO_THE_TENTH).await;
    let Ok(mut response) = request.send().await else {
        tally.with(Counts::failed);
        return;
    };
    // The body is read to its end so that the connection can be reused. Its content does not
    // matter.
    let _body = response.body().await;
    let (status, headers) = (response.status(), response.headers());
    tally.with(|counts| match status.is_success() {
        true => counts.answered(),
        // Only a rejection has Retry-After: the sample origin never sends it.
        false if headers.contains_key(header::RETRY_AFTER) => counts.rejected(),
        false => counts.failed(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_bounded() {
        let in_a_second = |from: u64| {
            let tenths = (from..from + 10).map(|tenth| tenth % ROUND);
            let at = |tenth| BURSTS.iter().filter(move |(at, _)| *at == tenth);
            tenths.flat_map(at).map(|(_, burst)| burst).sum::<usize>()
        };
        assert!((0..ROUND).all(|from| in_a_second(from) < 100));
        assert!(BURSTS.iter().all(|(at, burst)| *at < ROUND && *burst <= 30));
    }
}
