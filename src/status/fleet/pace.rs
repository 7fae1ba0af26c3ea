use std::collections::VecDeque;

use crate::status::views::{Origin, Plain, Sample};

/// Seconds over which it is measured what a gateway sends.
const WINDOW: f64 = 10.0;

/// Fewest seconds from which on it is judged. A part of a second may have any number of departures.
const MIN_WINDOW: f64 = 4.0;

/// Most moments that are kept. Gateways are read once a second.
const MAX_KEPT: usize = 32;

/// What a gateway has sent through its gates in the last seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace {
    /// The oldest first.
    moments: VecDeque<Counted>,
}

/// The gates of a gateway at a moment of its own clock, in seconds.
#[derive(Clone, Debug)]
struct Counted {
    time: f64,
    seq: u64,
    gates: Vec<GateCount>,
}

#[derive(Clone, Debug)]
struct GateCount {
    origin: Plain,
    departures: u64,
    /// Requests a second; `None`: no pace.
    rate: Option<f64>,
    /// From 0 to 1; `None`: not shared.
    part: Option<f64>,
}

/// What left a gate in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sent {
    /// Requests a second.
    pub(super) pace: f64,
    /// How long the window is, in seconds.
    pub(super) span: f64,
    /// The highest rate that was in force for all gateways that share it, in requests a second.
    pub(super) rate: Option<f64>,
    /// The largest part that the gateway had of it, from 0 to 1; `None`: not shared.
    pub(super) part: Option<f64>,
}

impl Sent {
    /// Whether it is measured for long enough to be judged.
    pub(super) fn is_sure(&self) -> bool {
        self.span >= MIN_WINDOW
    }
}

impl Pace {
    /// Notes what a gateway has told.
    pub(super) fn note(&mut self, sample: &Sample, origins: &[Origin]) {
        if let Some(last) = self.moments.back() {
            if last.seq == sample.seq {
                return;
            }
            // Another process counts from zero.
            if sample.seq < last.seq || sample.time <= last.time {
                self.moments.clear();
            }
        }
        let gates = sample.origins.iter().filter_map(|origin| {
            let gate = origin.gate.as_ref()?;
            let of = origins.iter().find(|of| of.name == origin.name);
            let sharing = of.and_then(|of| of.gate.as_ref()?.sharing.as_ref());
            Some(GateCount {
                origin: origin.name.clone(),
                departures: gate.departures?,
                rate: gate.rate.now.or(gate.rate.file),
                part: sharing.map(|sharing| sharing.part),
            })
        });
        self.moments.push_back(Counted {
            time: sample.time,
            seq: sample.seq,
            gates: gates.collect(),
        });
        let oldest = sample.time - WINDOW - 0.5;
        while self.moments.len() > MAX_KEPT
            || self.moments.front().is_some_and(|it| it.time < oldest)
        {
            self.moments.pop_front();
        }
    }

    /// Forgets all, because the gateway is not read any more.
    pub(super) fn clear(&mut self) {
        self.moments.clear();
    }

    /// What left the gate of an origin; `None` until it is measured.
    #[expect(clippy::cast_precision_loss, reason = "departures of ten seconds")]
    pub(super) fn sent(&self, origin: &Plain) -> Option<Sent> {
        let gate = |it: &Counted| {
            let gate = it.gates.iter().find(|gate| gate.origin == *origin);
            gate.map(|gate| (it.time, gate.clone()))
        };
        // A gate that came with a reload counts from there on.
        let mut gates: Vec<(f64, GateCount)> = Vec::new();
        for counted in &self.moments {
            match gate(counted) {
                None => gates.clear(),
                Some((time, gate)) => {
                    if gates
                        .last()
                        .is_some_and(|(_, it)| gate.departures < it.departures)
                    {
                        gates.clear();
                    }
                    gates.push((time, gate));
                }
            }
        }
        let [(from, first), .., (until, last)] = &gates[..] else {
            return None;
        };
        let most = |of: fn(&GateCount) -> Option<f64>| {
            let all = gates.iter().filter_map(|(_, gate)| of(gate));
            all.max_by(f64::total_cmp)
        };
        let span = until - from;
        Some(Sent {
            pace: (last.departures - first.departures) as f64 / span,
            span,
            rate: most(|gate| gate.rate),
            part: last.part.and_then(|_| most(|gate| gate.part)),
        })
    }
}
