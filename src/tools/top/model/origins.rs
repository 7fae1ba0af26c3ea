use super::Model;
use crate::status::views::{
    Gate, GateKey, GateOverride, GateSample, Origin, OriginSample, Places, Plain, RoomSample,
    Sample, Server, Shared, SharedAnswers,
};

/// How many of a gate's deepest keys are shown.
const KEYS: usize = 5;

/// A line of the origins' panel.
#[derive(Clone, Copy, Debug)]
pub(in crate::tools::top) enum OriginLine<'a> {
    Origin(&'a Origin),
    /// What it answered in the last second, and how fast.
    Answers(&'a OriginSample),
    /// What the requests of its routes share.
    Shared(SharedNow),
    /// What waits at the origin's gate.
    Waiting(GateNow<'a>),
    /// What the gate lets through.
    Limits(GateNow<'a>),
    /// What this gateway has of the places that several share.
    Places(&'a Places),
    /// Who is where in the origin's waiting room.
    Room(&'a RoomSample),
    /// What became of those who were called.
    Calls(&'a RoomSample),
    Server(&'a Server),
    /// Why a server is out or failing.
    Trouble(&'a Server),
    /// A key with requests that wait at the gate.
    Key(&'a GateKey),
}

/// A gate, and what the last sample says of it.
#[derive(Clone, Copy, Debug)]
pub(in crate::tools::top) struct GateNow<'a> {
    pub(in crate::tools::top) gate: &'a Gate,
    pub(in crate::tools::top) second: Option<&'a GateSample>,
}

/// What the requests of an origin's routes share, a second, averaged over the last seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::tools::top) struct SharedNow {
    pub(in crate::tools::top) asked: f64,
    pub(in crate::tools::top) sent: f64,
    pub(in crate::tools::top) stale: f64,
    /// The last one, in seconds.
    pub(in crate::tools::top) wait_p99: Option<f64>,
}

impl Model {
    /// The origins, with their gates, waiting rooms, servers and the deepest keys of their gates.
    pub(in crate::tools::top) fn origin_lines(&self) -> Vec<OriginLine<'_>> {
        let mut lines = Vec::new();
        for origin in self.origins() {
            lines.push(OriginLine::Origin(origin));
            let second = self.now().and_then(|sample| sample.origin(&origin.name));
            let told = second.filter(|it| !it.codes.is_empty() || !it.errors.is_empty());
            lines.extend(told.map(OriginLine::Answers));
            lines.extend(self.shared(origin).map(OriginLine::Shared));
            let gate = self.gate(origin);
            lines.extend(gate.map(OriginLine::Waiting));
            lines.extend(
                gate.and_then(|gate| gate.is_limited().then_some(OriginLine::Limits(gate))),
            );
            lines.extend(origin.places.as_ref().map(OriginLine::Places));
            let room = self.room(origin);
            lines.extend(room.map(OriginLine::Room));
            lines.extend(room.map(OriginLine::Calls));
            for server in &origin.servers {
                lines.push(OriginLine::Server(server));
                if has_trouble(server) {
                    lines.push(OriginLine::Trouble(server));
                }
            }
            lines.extend(gate.iter().flat_map(GateNow::keys).map(OriginLine::Key));
        }
        lines
    }

    /// The gate of an origin.
    pub(in crate::tools::top) fn gate<'a>(&'a self, origin: &'a Origin) -> Option<GateNow<'a>> {
        let second = |sample: &'a Sample| sample.origin(&origin.name)?.gate.as_ref();
        Some(GateNow {
            gate: origin.gate.as_ref()?,
            second: self.now().and_then(second),
        })
    }

    /// What the requests of an origin's routes share; `None` if none of them collapses.
    #[expect(clippy::cast_precision_loss, reason = "counts of ten seconds")]
    pub(in crate::tools::top) fn shared(&self, origin: &Origin) -> Option<SharedNow> {
        self.now()?.origin(&origin.name)?.shared.as_ref()?;
        let seconds = self
            .recent()
            .filter_map(|sample| sample.origin(&origin.name));
        let seconds: Vec<_> = seconds.filter_map(|it| it.shared.as_ref()).collect();
        let mean = |count: fn(&Shared) -> u64| {
            let sum: u64 = seconds.iter().map(|it| count(&it.shared)).sum();
            sum as f64 / seconds.len() as f64
        };
        Some(SharedNow {
            asked: mean(|it| it.asked),
            sent: mean(|it| it.sent),
            stale: mean(|it| {
                let stale = it.requests.get(&Plain::from("stale"));
                stale.copied().unwrap_or_default()
            }),
            wait_p99: seconds.iter().find_map(|it| it.wait_p99),
        })
    }

    /// The answers that requests share; `None` if no route collapses.
    pub(in crate::tools::top) fn shared_answers(&self) -> Option<&SharedAnswers> {
        self.now()?.shared_answers.as_ref()
    }

    /// The waiting room of an origin in the last second.
    pub(in crate::tools::top) fn room(&self, origin: &Origin) -> Option<&RoomSample> {
        self.now()?.origin(&origin.name)?.room.as_ref()
    }
}

/// Whether there is something to tell of why a server is out or failing.
fn has_trouble(server: &Server) -> bool {
    let check = server.last_check.as_ref();
    let told = server.out.is_some() || server.last_failure.is_some();
    server.availability() != "asked" && (told || check.is_some_and(|it| !it.healthy))
}

impl<'a> GateNow<'a> {
    /// Requests that wait.
    pub(in crate::tools::top) fn depth(&self) -> u64 {
        self.second
            .map_or(self.gate.queue_depth, |second| second.depth)
    }

    /// How many wait of each class, such as ` (interactive 12, batch 3)`; empty without classes.
    pub(in crate::tools::top) fn classes(&self) -> String {
        let classes = self.second.map_or(&self.gate.classes, |it| &it.classes);
        let told = classes
            .iter()
            .map(|it| format!("{} {}", it.class, it.queue_depth));
        let told: Vec<String> = told.collect();
        if told.is_empty() {
            String::new()
        } else {
            format!(" ({})", told.join(", "))
        }
    }

    /// Requests that were rejected in the last second.
    pub(in crate::tools::top) fn rejected(&self) -> u64 {
        let reasons = self
            .second
            .iter()
            .flat_map(|second| second.rejected.values());
        reasons.fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The reason of most rejections in the last second.
    pub(in crate::tools::top) fn reason(&self) -> Option<&'a str> {
        let reasons = self.second.into_iter().flat_map(|second| &second.rejected);
        let most = reasons.filter(|(_, count)| **count > 0);
        Some(most.max_by_key(|(_, count)| **count)?.0.as_str())
    }

    /// The wait that one in a hundred requests of the last second had exceeded.
    pub(in crate::tools::top) fn p99(&self) -> Option<f64> {
        self.second?.wait_p99
    }

    /// The rate now, and that of the file if it is another; `None` without one.
    pub(in crate::tools::top) fn rate(&self) -> Option<String> {
        if let Some(rate) = self.overridden().and_then(|it| it.rate.as_ref()) {
            return Some(rate.to_string());
        }
        let file = self.gate.rate.file.as_ref()?;
        let now = self.second.and_then(|second| second.rate.now);
        let of_file = self.second.and_then(|second| second.rate.file);
        Some(match (now, of_file) {
            (Some(now), Some(of_file)) if now < of_file => {
                format!("{}r/s of {file}", rounded(now))
            }
            _ => file.to_string(),
        })
    }

    /// The most requests at the origin at once now, and that of the file if it is another.
    pub(in crate::tools::top) fn places(&self) -> Option<String> {
        let now = self.gate.max_in_flight.now;
        Some(match (now, self.gate.max_in_flight.file) {
            (Some(now), Some(file)) if now != file => format!("{now} (file: {file})"),
            (now, file) => file.or(now)?.to_string(),
        })
    }

    /// What is not as in the file for a while.
    pub(in crate::tools::top) fn overridden(&self) -> Option<&'a GateOverride> {
        let now = self
            .second
            .map_or(&self.gate.overridden, |it| &it.overridden);
        now.as_ref()
    }

    /// Why it lets less through than the file says.
    pub(in crate::tools::top) fn backing_off(&self) -> Option<String> {
        let why = self.gate.backing_off.as_ref()?;
        let shadow = if why.shadow { "shadow, " } else { "" };
        Some(match why.text.as_str() {
            "" => format!("{shadow}{}", why.reason),
            text => format!("{shadow}{}, {text}", why.reason),
        })
    }

    /// That the origin is down and for how long requests wait for it.
    pub(in crate::tools::top) fn outage(&self) -> Option<String> {
        let outage = self.gate.outage.as_ref()?;
        let lasts = rounded(outage.lasts);
        Some(format!(
            "down for {lasts}s, requests wait up to {}",
            outage.hold
        ))
    }

    /// The keys with the most waiting requests; none where all share one queue.
    pub(in crate::tools::top) fn keys(&self) -> &'a [GateKey] {
        let keys: &[GateKey] = match self.gate.share {
            Some(_) => &self.gate.deepest,
            None => &[],
        };
        &keys[..keys.len().min(KEYS)]
    }

    fn is_limited(&self) -> bool {
        let gate = self.gate;
        let is_special = gate.backing_off.is_some() || gate.outage.is_some();
        gate.rate.file.is_some() || is_special || self.overridden().is_some()
    }
}

/// A number with about three digits.
fn rounded(number: f64) -> String {
    match number {
        n if n < 10.0 => format!("{n:.2}"),
        n if n < 100.0 => format!("{n:.1}"),
        n => format!("{n:.0}"),
    }
}
