//! Which faster rate would help a zone that rejects, or makes requests wait for long.

use std::collections::HashMap;
use std::time::Duration;

use foldhash::fast::RandomState;

use super::other_numbers::OtherNumbers;
use super::replayed::{STEP, Side, alone};
use crate::config::Settings;
use crate::limit::{Moment, Rate};
use crate::status::views::{RateAdvice, Replayed};
use crate::time::clock;
use crate::zone::{Arrival, Arrivals};

/// The rates that are tried, as multiples of the one in force.
const FACTORS: [f64; 8] = [1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0];
/// A rate is fast enough if it rejects nobody, and 99 of 100 waits are no longer than this.
const SHORT_WAIT: f64 = 1.0;

/// Replays the arrivals of the zone with this index, at its rate and at faster ones until one is
/// fast enough.
///
/// The rates that are not replayed by `deadline` are left out. `None` if that is all of them, or
/// if the zone has no rate.
pub(crate) fn advise(
    arrivals: &Arrivals,
    settings: &Settings,
    zone: usize,
    deadline: Moment,
) -> Option<RateAdvice> {
    let rates = faster(settings.zones.get(zone)?.rate);
    let span = arrivals.until().since(arrivals.since());
    advise_on(
        &|| arrivals.in_order(),
        settings,
        zone,
        &rates,
        span,
        deadline,
    )
}

fn advise_on<'a, I: ExactSizeIterator<Item = Arrival<'a>>>(
    arrivals: &impl Fn() -> I,
    settings: &Settings,
    zone: usize,
    rates: &[Rate],
    span: Duration,
    deadline: Moment,
) -> Option<RateAdvice> {
    let asked = settings.zones.get(zone)?;
    if asked.rate.is_unlimited() || rates.is_empty() {
        return None;
    }
    let tried = |rate: Rate| {
        let wanted = OtherNumbers::of_rate(rate);
        let settings = alone(settings, wanted.zone(asked));
        let mut side = Side::new(&settings, &wanted)?;
        let mut keys: HashMap<&[u8], bool, RandomState> = HashMap::default();
        let arrivals = arrivals();
        let requests = arrivals.len() as u64;
        for (nth, arrival) in arrivals.enumerate() {
            if nth % STEP == 0 && clock::now() >= deadline {
                return None;
            }
            *keys.entry(arrival.key).or_default() |= side.is_limited(&arrival);
        }
        let limited = keys.values().filter(|limited| **limited).count() as u64;
        Some((side.finish(requests), keys.len() as u64, limited))
    };
    let (now, keys, limited_keys) = tried(asked.rate)?;
    let mut faster = Vec::new();
    for rate in rates {
        let Some((replayed, ..)) = tried(*rate) else {
            break;
        };
        let is_enough = replayed.is_enough();
        faster.push(replayed);
        if is_enough {
            break;
        }
    }
    (!faster.is_empty()).then_some(RateAdvice {
        span: span.as_secs_f64(),
        keys,
        limited_keys,
        now,
        faster,
    })
}

impl Replayed {
    /// Whether it rejects nobody, and nobody waits long.
    fn is_enough(&self) -> bool {
        self.share_rejected <= 0.0 && self.wait_p99.is_none_or(|wait| wait <= SHORT_WAIT)
    }
}

/// Round rates above one, the slowest first.
fn faster(rate: Rate) -> Vec<Rate> {
    if rate.is_unlimited() {
        return Vec::new();
    }
    let mut rates: Vec<Rate> = Vec::new();
    for factor in FACTORS {
        let a_second = rate.per_second() * factor;
        let text = match a_second {
            it if it >= 100.0 => format!("{:.0}r/s", (it / 10.0).ceil() * 10.0),
            it if it >= 1.0 => format!("{:.0}r/s", it.ceil()),
            it => format!("{:.0}r/m", (it * 60.0).ceil()),
        };
        // Above the fastest rate there is none.
        if let Ok(faster) = text.parse::<Rate>()
            && faster.per_second() > rates.last().unwrap_or(&rate).per_second()
        {
            rates.push(faster);
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::parse;
    use crate::limit::{Cost, Delay, Limit};

    const NEVER: Moment = Moment::from_nanos(u64::MAX);
    const KEYS: [&str; 30] = [
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r",
        "s", "t", "u", "v", "w", "x", "y", "z", "0", "1", "2", "3",
    ];

    fn settings(rate: &str) -> Settings {
        let text = format!(
            "[origins.app]\nservers = [\"http://127.0.0.1:1\"]\n[zones.z]\nkey = \"$remote_addr\"\nrate = \"{rate}\"\n\
             [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{{ zone = \"z\", burst = 5 }}]\n"
        );
        parse(&text, Path::new("gateway.toml"), false).unwrap()
    }

    /// Each of 30 clients sends a request every 400 ms, for a minute.
    fn arrivals() -> Vec<Arrival<'static>> {
        let limit = Limit {
            burst: 5,
            delay: Delay::Above(0),
            max_wait: None,
            cost: Cost::ONE,
            in_flight: None,
            above_burst: 0,
        };
        let at = |nth: u64| Moment::from_nanos(1_700_000_000_000_000_000 + nth * 400_000_000);
        let of = |nth| {
            KEYS.iter().map(move |key| Arrival {
                time: at(nth),
                key: key.as_bytes(),
                limit,
                dry_run: false,
            })
        };
        (0..150).flat_map(of).collect()
    }

    fn advice(rate: &str, deadline: Moment) -> Option<RateAdvice> {
        let (settings, arrivals) = (settings(rate), arrivals());
        let rates = faster(settings.zones[0].rate);
        let span = Duration::from_secs(60);
        advise_on(
            &|| arrivals.iter().copied(),
            &settings,
            0,
            &rates,
            span,
            deadline,
        )
    }

    #[test]
    fn faster_rates_are_tried_until_one_rejects_nobody() {
        let advice = advice("1r/s", NEVER).unwrap();
        assert_eq!((advice.keys, advice.limited_keys), (30, 30));
        assert!(
            (0.5..0.6).contains(&advice.now.share_rejected),
            "{advice:?}"
        );
        let rates: Vec<_> = advice.faster.iter().map(|it| it.rate.as_str()).collect();
        assert_eq!(rates, ["2r/s", "3r/s"]);
        assert!(
            (0.1..0.2).contains(&advice.faster[0].share_rejected),
            "{advice:?}"
        );
        assert!(advice.faster[1].is_enough(), "{advice:?}");
    }

    #[test]
    fn the_time_of_the_replays_is_bounded() {
        assert_eq!(advice("1r/s", clock::now()), None);
    }

    #[test]
    fn the_rates_that_are_tried_are_round_and_rise() {
        let told = |rate: &str| {
            let all = faster(rate.parse().unwrap());
            all.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(told("1r/s"), "2r/s 3r/s 5r/s 10r/s 20r/s 50r/s");
        assert_eq!(told("1r/m"), "2r/m 3r/m 5r/m 10r/m 20r/m 50r/m");
        assert_eq!(
            told("97r/s"),
            "130r/s 150r/s 200r/s 300r/s 490r/s 970r/s 1940r/s 4850r/s"
        );
        assert_eq!(told("1000000r/s"), "");
    }
}
