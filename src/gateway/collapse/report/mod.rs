//! Status of shared responses, as the API and the live samples show it.
//!
//! `sample` has the types of the JSON, `sampler` takes the samples of each second, `metrics` writes
//! the metrics.

pub(crate) mod metrics;
pub(crate) mod sample;
pub(crate) mod sampler;

use self::sample::{Shared, SharedAnswers};
use crate::http::gateway::Gateway;
use crate::observe::metrics::SharedOutcome;
use crate::status::counts::Labelled;
use crate::status::headline::words::part;
use crate::status::plain::Plain;

/// Returns these counts with the numbers of requests from clients and to the origin.
pub(crate) fn shared_status(requests: Labelled) -> Shared {
    let count = |counts: fn(SharedOutcome) -> bool| {
        let all = SharedOutcome::ALL.into_iter().filter(|it| counts(*it));
        all.filter_map(|it| requests.get(&Plain::from(it.label())))
            .sum()
    };
    let received = count(SharedOutcome::is_received);
    let sent = count(SharedOutcome::is_sent);
    Shared {
        received,
        sent,
        share: (received > 0).then(|| part(received.saturating_sub(sent), received)),
        requests,
    }
}

/// Returns the memory of the responses of all routes; `None` if no route collapses.
pub(crate) fn answers(gateway: &Gateway) -> Option<SharedAnswers> {
    let shared = gateway.used_shared_answers()?;
    let kept = shared.kept();
    Some(SharedAnswers {
        answers: kept.answers as u64,
        bytes: kept.bytes as u64,
        max_bytes: gateway.settings().server.shared_answers.get(),
        evicted: shared.evicted(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received_sent_and_share(counts: &[(&str, u64)]) -> (u64, u64, Option<f64>) {
        let counts = counts.iter().map(|(name, count)| ((*name).into(), *count));
        let status = shared_status(counts.collect());
        (status.received, status.sent, status.share)
    }

    #[test]
    fn requests_not_sent_to_the_origin_count_as_shared() {
        let mixed = [
            ("alone", 1),
            ("leader", 10),
            ("follower", 50),
            ("kept", 30),
            ("stale", 9),
            ("refresh", 4),
        ];
        assert_eq!(received_sent_and_share(&mixed), (100, 15, Some(0.85)));
        assert_eq!(received_sent_and_share(&[]), (0, 0, None));
        // The stale response was sent in the second before.
        assert_eq!(received_sent_and_share(&[("refresh", 1)]), (0, 1, None));
        assert_eq!(
            received_sent_and_share(&[("leader", 1), ("refresh", 1)]),
            (1, 2, Some(0.0))
        );
    }
}
