//! Call and reply with which gateways share what they have learned about an origin.

use std::time::Duration;

use config::redis::double;
use limit::{
    BackoffExchange, GivenBack, Learned, LearnedInFlight, LearnedQuery, LearnedRate, LearnedReply,
    Moment, Percent, Token,
};

use super::Error;
use super::operation::micros;
use super::reply::Packed;
use super::script::{Script, ScriptCall};

/// Least lifetime of the stored state, in milliseconds. By then every cut has been restored.
const LIFETIME: f64 = 600_000.0;
/// Upper bound of a duration, in seconds.
const MAX_SPAN: f64 = 1e9;

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
        let (name, content) = match &self.ask.update {
            Some((token, learned)) => (*token, packed(learned)),
            None => (Token::default(), Vec::new()),
        };
        let reported = self.ask.update.as_ref();
        let paused = reported.map_or(Duration::ZERO, |(_, learned)| learned.paused);
        let length = u16::try_from(content.len()).unwrap_or(u16::MAX);
        let mut call = Vec::with_capacity(50 + content.len());
        call.extend(self.at.map_or(-1.0, micros).to_le_bytes());
        call.extend(self.ask.known);
        call.extend(double(self.ask.answers).to_le_bytes());
        call.extend((LIFETIME + paused.as_secs_f64() * 1000.0).to_le_bytes());
        call.extend(name);
        call.extend(length.to_le_bytes());
        call.extend(content);
        call
    }

    fn read(&self, packed: &[u8]) -> Option<Result<LearnedReply, Error>> {
        read(packed)
    }
}

fn read(packed: &[u8]) -> Option<Result<LearnedReply, Error>> {
    let mut rest = Packed(packed);
    let now = rest.moment()?;
    match rest.take()? {
        [0] => return Some(Err(Error::taken())),
        [1] => {}
        _ => return None,
    }
    let stored = rest.moment()?;
    let token = rest.take()?;
    let answers = Some(f64::from_le_bytes(rest.take()?));
    let answers = answers.filter(|it| it.is_finite() && *it >= 0.0)?;
    let counted_since = rest.moment()?;
    let learned = match rest.length()? {
        0 => None,
        _ => Some(learned(&mut rest)?),
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

/// Packs the state, little-endian: durations in seconds, parts in millionths, -1 for none.
fn packed(learned: &Learned) -> Vec<u8> {
    let Learned {
        rate, in_flight, ..
    } = learned;
    let mut packed = Vec::with_capacity(116);
    let mut span = |span: Duration| packed.extend(span.as_secs_f64().to_le_bytes());
    span(learned.cut_ago);
    span(learned.paused);
    span(rate.steady);
    span(rate.steady_time);
    span(in_flight.cut_ago);
    match in_flight.given_back {
        Some(it) => [it.ago, it.kept, it.mean].into_iter().for_each(span),
        None => packed.extend([-1.0_f64; 3].into_iter().flat_map(f64::to_le_bytes)),
    }
    let counts = [
        rate.answers,
        rate.bad,
        in_flight.answers,
        in_flight.bad,
        learned.cut,
    ];
    packed.extend(counts.into_iter().flat_map(u64::to_le_bytes));
    let parts = [Some(rate.share), rate.trouble_at, Some(in_flight.share)];
    for part in parts {
        // Zero is not a valid point of trouble, so it stands for none.
        let part = part.map_or(0, Percent::millionths);
        packed.extend(part.to_le_bytes());
    }
    packed
}

/// Reads what [`packed`] wrote.
fn learned(rest: &mut Packed<'_>) -> Option<Learned> {
    let mut spans = [None; 8];
    for span in &mut spans {
        *span = read_span(f64::from_le_bytes(rest.take()?));
    }
    let [
        cut_ago,
        paused,
        steady,
        steady_time,
        in_flight_cut_ago,
        ago,
        kept,
        mean,
    ] = spans;
    let mut counts = [0; 5];
    for count in &mut counts {
        *count = u64::from_le_bytes(rest.take()?);
    }
    let [answers, bad, in_flight_answers, in_flight_bad, cut] = counts;
    let mut part = || {
        let part = Some(u32::from_le_bytes(rest.take()?));
        part.filter(|part| *part <= Percent::ALL.millionths())
    };
    let (share, trouble_at, in_flight) = (part()?, part()?, part()?);
    let given_back = match (ago, kept, mean) {
        (Some(ago), Some(kept), Some(mean)) => Some(GivenBack { ago, kept, mean }),
        _ => None,
    };
    Some(Learned {
        cut,
        cut_ago: cut_ago?,
        paused: paused?,
        rate: LearnedRate {
            share: Percent::from_millionths(share.max(1)),
            steady: steady?,
            steady_time: steady_time?,
            trouble_at: (trouble_at > 0).then(|| Percent::from_millionths(trouble_at)),
            answers,
            bad,
        },
        in_flight: LearnedInFlight {
            share: Percent::from_millionths(in_flight.max(1)),
            cut_ago: in_flight_cut_ago?,
            answers: in_flight_answers,
            bad: in_flight_bad,
            given_back,
        },
    })
}

/// Reads a duration; `None` if it is not valid or stands for none.
fn read_span(seconds: f64) -> Option<Duration> {
    (0.0..MAX_SPAN)
        .contains(&seconds)
        .then(|| Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_learned() -> impl Strategy<Value = Learned> {
        let span = || (0..100_000_u64).prop_map(Duration::from_millis);
        let part = || (1..=1_000_000_u32).prop_map(Percent::from_millionths);
        let given_back = (span(), span(), span());
        let given_back = given_back.prop_map(|(ago, kept, mean)| GivenBack { ago, kept, mean });
        let rate = (
            part(),
            span(),
            span(),
            prop::option::of(part()),
            any::<(u64, u64)>(),
        );
        let in_flight = (
            part(),
            span(),
            any::<(u64, u64)>(),
            prop::option::of(given_back),
        );
        (any::<u64>(), span(), span(), rate, in_flight).prop_map(
            |(cut, ago, paused, rate, in_flight)| Learned {
                cut,
                cut_ago: ago,
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
            let packed = packed(&known);
            let mut rest = Packed(&packed);
            prop_assert_eq!(learned(&mut rest), Some(known));
            prop_assert!(rest.0.is_empty());
        }

        #[test]
        fn random_bytes_do_not_break_the_reader(packed in prop::collection::vec(any::<u8>(), 0..220)) {
            let _read = read(&packed);
            let mut reported: Vec<u8> = 1e15_f64.to_le_bytes().to_vec();
            reported.push(1);
            reported.extend(packed);
            let _read = read(&reported);
        }
    }
}
