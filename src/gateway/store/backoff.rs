//! Call and reply by which gateways share, through Redis, what they have learned about an origin.
//!
//! *Learned* are the limits that back-off has lowered (*cut*), and the pauses that the origin has
//! ordered.

use std::time::Duration;

use config::redis::double;
use limit::{BackoffExchange, Learned, LearnedQuery, LearnedReply, Moment, Token};

use super::Error;
use super::operation::at_or_now;
use super::reply::{DONE, Packed, TAKEN};
use super::script::{Script, ScriptCall};

/// Minimum lifetime of the stored state. By then every cut has been restored.
const MIN_LIFETIME: Duration = Duration::from_secs(600);

/// Call of a gateway: reports what it has learned about an origin, and asks for the stored state.
#[derive(Clone, Debug)]
pub struct BackoffCall<'a> {
    /// Name in Redis after the [`Store`](super::Store)'s prefix.
    pub key: &'a [u8],
    /// Content of the call.
    pub ask: &'a LearnedQuery,
    /// Time of the call. `None` means now, on Redis's clock; only tests set it.
    pub at: Option<Moment>,
}

impl ScriptCall for BackoffCall<'_> {
    const SCRIPT: Script = Script::Backoff;
    type Reply = LearnedReply;

    fn keys(&self) -> Vec<Vec<u8>> {
        vec![self.key.to_vec()]
    }

    fn packed(&self) -> Vec<u8> {
        let (token, content, paused) = match &self.ask.update {
            Some((token, learned)) => (*token, content_of(learned), learned.paused),
            None => (Token::default(), Vec::new(), Duration::ZERO),
        };
        let lifetime_millis = (MIN_LIFETIME + paused).as_secs_f64() * 1000.0;
        let length = u16::try_from(content.len()).unwrap_or(u16::MAX);
        let mut packed = Vec::with_capacity(50 + content.len());
        packed.extend(at_or_now(self.at).to_le_bytes());
        packed.extend(self.ask.known);
        packed.extend(double(self.ask.answers).to_le_bytes());
        packed.extend(lifetime_millis.to_le_bytes());
        packed.extend(token);
        packed.extend(length.to_le_bytes());
        packed.extend(content);
        packed
    }

    fn read(&self, packed: &[u8]) -> Option<Result<LearnedReply, Error>> {
        read(packed)
    }
}

/// Returns a state as JSON, which the script stores as it is.
fn content_of(learned: &Learned) -> Vec<u8> {
    serde_json::to_vec(learned).unwrap_or_default()
}

/// Reads a reply; `None` if it is not one of the script.
pub(super) fn read(packed: &[u8]) -> Option<Result<LearnedReply, Error>> {
    let mut rest = Packed(packed);
    let now = rest.moment()?;
    match rest.take()? {
        [TAKEN] => return Some(Err(Error::key_taken())),
        [DONE] => {}
        _ => return None,
    }
    let stored = rest.moment()?;
    let token = rest.take()?;
    let answers = rest.number().filter(|answers| *answers >= 0.0)?;
    let counted_since = rest.moment()?;
    let content = rest.text()?;
    let learned = match &*content {
        "" => None,
        content => Some(serde_json::from_str(content).ok()?),
    };
    rest.0.is_empty().then_some(Ok(LearnedReply {
        token,
        learned,
        ago: BackoffExchange::ago(stored, now),
        now,
        answers,
        counted_since,
    }))
}

#[cfg(test)]
mod tests {
    use limit::{GivenBack, LearnedInFlight, LearnedRate, Percent};
    use proptest::prelude::*;

    use super::*;

    fn any_learned() -> impl Strategy<Value = Learned> {
        let span = || (0..100_000_u64).prop_map(Duration::from_millis);
        let part = || (1..=1_000_000_u32).prop_map(Percent::from_millionths);
        let given_back = (span(), span(), span());
        let given_back = given_back.prop_map(|(ago, kept, mean)| GivenBack { ago, kept, mean });
        let (given_back, trouble_at) = (prop::option::of(given_back), prop::option::of(part()));
        let rate = (part(), span(), span(), trouble_at, any::<(u64, u64)>());
        let in_flight = (part(), span(), any::<(u64, u64)>(), given_back);
        (any::<u64>(), span(), span(), rate, in_flight).prop_map(
            |(cut, cut_ago, paused, rate, in_flight)| Learned {
                cut,
                cut_ago,
                paused,
                rate: LearnedRate {
                    share: rate.0,
                    steady: rate.1,
                    steady_time: rate.2,
                    trouble_at: rate.3,
                    answers: rate.4.0,
                    bad: rate.4.1,
                },
                in_flight: LearnedInFlight {
                    share: in_flight.0,
                    cut_ago: in_flight.1,
                    answers: in_flight.2.0,
                    bad: in_flight.2.1,
                    given_back: in_flight.3,
                },
            },
        )
    }

    proptest! {
        #![proptest_config(testing::config())]

        #[test]
        fn a_learned_state_survives_packing(known in any_learned()) {
            let content = content_of(&known);
            let read: Learned = serde_json::from_slice(&content).unwrap();
            prop_assert_eq!(read, known);
        }
    }
}
