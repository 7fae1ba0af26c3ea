//! What would other numbers do at the gate of an origin? Lets the last seconds through again.

use std::collections::VecDeque;

use super::gate_queue::{Capacity, GateQueue, share, whole};
use crate::config::{Origin, Settings};
use crate::limit::Rate;
use crate::status::views::{GateReplayed, GateWhatIf, Happened, OriginSample, Plain};

/// The time that requests take is the mean of this many seconds, this one included.
const SMOOTHED: usize = 10;
/// Shortest and longest time between two samples, in seconds.
const MIN_SPAN: f64 = 0.2;
const MAX_SPAN: f64 = 10.0;

/// Other numbers for the gate of an origin. What is `None` stays as it was in each second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OtherGate {
    pub(crate) rate: Option<Rate>,
    pub(crate) max_in_flight: Option<u64>,
}

/// A second at the gate of an origin.
#[derive(Clone, Debug, Default)]
pub(crate) struct GateSecond {
    /// How long it took, in seconds.
    span: f64,
    arrivals: f64,
    departures: f64,
    rejected: f64,
    left: f64,
    in_flight: f64,
    /// In requests a second; `None`: no pace.
    rate: Option<f64>,
    places: Option<u64>,
    /// The mean time of a request at the origin, in seconds; `None`: not known.
    takes: Option<f64>,
    is_paused: bool,
}

/// The seconds between samples of an origin, each with its Unix time, and how many requests waited
/// before the first.
///
/// Who came is who left in whatever way, and who waits more.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn seconds(samples: &[(f64, OriginSample)]) -> (f64, Vec<GateSecond>) {
    let of_gates = samples.iter();
    let of_gates = of_gates.filter_map(|(at, it)| Some((*at, it.gate.as_ref()?, it.in_flight)));
    let of_gates: Vec<_> = of_gates.collect();
    let waiting = of_gates.first().map_or(0, |(_, gate, _)| gate.depth);
    let mut seconds = Vec::with_capacity(of_gates.len());
    for pair in of_gates.windows(2) {
        let [(from, before, _), (until, gate, in_flight)] = pair else {
            continue;
        };
        let departures = gate.departures.unwrap_or_default();
        let departures = departures.saturating_sub(before.departures.unwrap_or_default()) as f64;
        let rejected = gate.rejected.values().sum::<u64>() as f64;
        let left = gate.left as f64;
        let more = gate.depth as f64 - before.depth as f64;
        seconds.push(GateSecond {
            span: (until - from).clamp(MIN_SPAN, MAX_SPAN),
            arrivals: (departures + rejected + left + more).max(0.0),
            departures,
            rejected,
            left,
            in_flight: *in_flight as f64,
            rate: gate.rate.now,
            places: gate.max_in_flight.now,
            takes: None,
            is_paused: gate.overridden.as_ref().is_some_and(|it| it.pause),
        });
    }
    note_times(&mut seconds);
    (waiting as f64, seconds)
}

/// How long requests took: as many are at the origin as come a second times how long they stay.
fn note_times(seconds: &mut [GateSecond]) {
    let mut last = VecDeque::with_capacity(SMOOTHED);
    for second in seconds {
        if last.len() == SMOOTHED {
            last.pop_front();
        }
        last.push_back((second.in_flight * second.span, second.departures));
        let (busy, departures) = last
            .iter()
            .fold((0.0, 0.0), |all, it| (all.0 + it.0, all.1 + it.1));
        second.takes = (departures > 0.0 && busy > 0.0).then(|| busy / departures);
    }
}

/// Lets these seconds through the gate again, as it was and with other numbers.
///
/// `settings`: those of `origin`. `waiting`: how many requests waited before.
pub(crate) fn replay_gate(
    (waiting, seconds): (f64, &[GateSecond]),
    settings: &Settings,
    origin: &Origin,
    wanted: OtherGate,
) -> GateWhatIf {
    let sides = [OtherGate::default(), wanted].map(|side| {
        let mut queue = GateQueue::new(origin, waiting);
        for second in seconds {
            queue.second(second.span, second.arrivals, second.capacity(side));
        }
        GateReplayed {
            rate: rate_of(seconds, origin, side),
            max_in_flight: side
                .max_in_flight
                .or(seconds.last().and_then(|it| it.places)),
            ..queue.finish()
        }
    });
    let [now, then] = sides;
    let sum = |of: fn(&GateSecond) -> f64| whole(seconds.iter().map(of).sum());
    let (departed, rejected, left) = (
        sum(|it| it.departures),
        sum(|it| it.rejected),
        sum(|it| it.left),
    );
    let requests = departed + rejected + left;
    GateWhatIf {
        origin: Plain::new(&origin.name),
        span_seconds: seconds.iter().map(|it| it.span).sum(),
        arrivals: whole(waiting + seconds.iter().map(|it| it.arrivals).sum::<f64>()),
        ignores: ignores(settings, origin, left, &now, &then),
        happened: Happened {
            requests,
            rejected,
            cancelled: left,
            share_rejected: share(rejected, requests),
        },
        now,
        then,
        ..GateWhatIf::default()
    }
}

impl GateSecond {
    fn capacity(&self, side: OtherGate) -> Capacity {
        if self.is_paused {
            return Capacity::of(0.0);
        }
        let rate = side.rate.map(Rate::per_second).or(self.rate);
        #[allow(clippy::cast_precision_loss)]
        let places = side.max_in_flight.or(self.places).map(|most| most as f64);
        let by_places = places.and_then(|most| Some(most / self.takes?));
        match (rate, by_places) {
            (Some(rate), Some(places)) => Capacity::of(rate.min(places)),
            (Some(most), None) | (None, Some(most)) => Capacity::of(most),
            (None, None) => Capacity::UNLIMITED,
        }
    }
}

/// The rate that counts on one side, as a file writes it.
fn rate_of(seconds: &[GateSecond], origin: &Origin, side: OtherGate) -> Plain {
    let last = seconds.last().and_then(|it| it.rate);
    match (side.rate, origin.rate, last) {
        (Some(rate), ..) => Plain::new(&rate.to_string()),
        (None, Some(rate), Some(now)) if (rate.per_second() - now).abs() < 1e-6 * now => {
            Plain::new(&rate.to_string())
        }
        (None, _, Some(now)) => Plain::new(&format!("{now:.1}r/s")),
        (None, ..) => "none".into(),
    }
}

/// What happened to these requests and is not part of the replay.
fn ignores(
    settings: &Settings,
    origin: &Origin,
    left: u64,
    now: &GateReplayed,
    then: &GateReplayed,
) -> Vec<Plain> {
    let has_costs = settings.has_costs(&origin.name);
    let changes_load = then.most_in_a_second != now.most_in_a_second
        || then.max_in_flight.is_some() && then.max_in_flight != now.max_in_flight;
    let all = [
        (changes_load, "that the origin takes longer with more to do"),
        (left > 0, "clients that left while they waited"),
        (
            has_costs,
            "what requests cost: each counts as one unit of the rate, also where its cost is learned",
        ),
        (
            origin.share.is_some(),
            "turns and queues of single keys and classes",
        ),
    ];
    let said = all.into_iter().filter(|(holds, _)| *holds);
    said.map(|(_, what)| what.into()).collect()
}
