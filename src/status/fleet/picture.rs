use std::collections::BTreeMap;

use super::clock::ClockOffset;
use super::keys;
use super::member::{Last, Member, Named};
use super::reading::Reading;
use super::rules;
use crate::status::timestamp::timestamp;
use crate::status::views::{
    Fleet, FleetGate, FleetGatePart, FleetGateway, FleetPlaces, FleetPlacesPart, FleetZone,
    FleetZonePart, Gate, GateSample, Origin, Plain, Zone, ZoneSample,
};

/// The picture of these gateways.
pub(super) fn of(members: &[Member]) -> Fleet {
    let names = names(members);
    let twins = twins(members);
    let each = members.iter().zip(&names).zip(&twins);
    let answering: Vec<Named> = each
        .filter(|(_, twin)| twin.is_none())
        .filter_map(|((member, name), _)| {
            let reading = member.reading()?;
            Some(Named {
                name,
                member,
                reading,
            })
        })
        .collect();
    let gateways = members.iter().enumerate().filter_map(|(at, member)| {
        let twin = twins[at].map(|twin| (&members[twin], &names[twin]));
        // The gateway itself may be among its peers: one file for all gateways.
        let is_own = twin.is_some_and(|(twin, _)| twin.address.is_none());
        (!is_own).then(|| gateway(member, &names[at], twin.map(|(_, name)| name)))
    });
    let mut fleet = Fleet {
        gateways: gateways.collect(),
        zones: zones(&answering),
        gates: gates(&answering),
        places: places(&answering),
        keys: keys::limited(&answering),
        ..Fleet::default()
    };
    fleet.headline = rules::headline(&fleet, &answering);
    fleet
}

/// For each gateway the index of the one before it that is the same process.
fn twins(members: &[Member]) -> Vec<Option<usize>> {
    let id = |member: &Member| member.reading().map(|it| it.id.clone());
    let ids: Vec<_> = members
        .iter()
        .map(|member| id(member).unwrap_or_default())
        .collect();
    let first = |at: usize| {
        let is_it = |other: &Plain| !other.as_str().is_empty() && *other == ids[at];
        ids[..at].iter().position(is_it)
    };
    (0..ids.len()).map(first).collect()
}

/// Its own name if no other gateway has the same, or else its address.
fn names(members: &[Member]) -> Vec<Plain> {
    let twins = twins(members);
    let mut counts = BTreeMap::<&Plain, usize>::new();
    for (member, _) in members
        .iter()
        .zip(&twins)
        .filter(|(_, twin)| twin.is_none())
    {
        *counts.entry(&member.name).or_default() += 1;
    }
    let of = |member: &Member| {
        let is_alone = counts.get(&member.name).is_none_or(|count| *count == 1);
        if is_alone && !member.name.as_str().is_empty() {
            return member.name.clone();
        }
        let address = member.address.as_ref();
        address.map_or_else(|| "this gateway".into(), |it| Plain::new(&it.to_string()))
    };
    members.iter().map(of).collect()
}

fn gateway(member: &Member, name: &Plain, twin: Option<&Plain>) -> FleetGateway {
    let address = member.address.as_ref();
    let mut view = FleetGateway {
        name: name.clone(),
        address: address.map(|address| Plain::new(&address.to_string())),
        ..FleetGateway::default()
    };
    let reading = match &member.last {
        Last::Nothing => {
            view.state = "unknown".into();
            return view;
        }
        Last::Unread { since, kind, why } => {
            view.state = kind.label().into();
            view.since = Some(timestamp(*since));
            view.reason = Some(why.clone());
            return view;
        }
        Last::Reading(reading) => reading,
    };
    view.version = reading.version.clone();
    if let Some(twin) = twin {
        view.state = "same".into();
        view.reason = Some(Plain::new(&format!("it is {twin}, and counts once")));
        return view;
    }
    view.state = "answers".into();
    view.clock = reading.clock.map(ClockOffset::likely);
    if let Some(sample) = &reading.sample {
        view.stopping = sample.stopping;
        view.answers = sum(sample.codes.values().copied());
        view.severity = sample.headline.severity.clone();
        view.title = sample.headline.title.clone();
    }
    view.in_flight = sum(reading.origins.iter().map(|origin| origin.in_flight));
    let zones = reading.zones.iter().map(|zone| ZoneNow::of(reading, zone));
    let gates = reading
        .origins
        .iter()
        .filter_map(|origin| GateNow::of(reading, origin));
    let both = zones.map(|zone| (zone.depth(), zone.rejected()));
    for (depth, rejected) in both.chain(gates.map(|gate| (gate.depth(), gate.rejected()))) {
        view.depth = view.depth.saturating_add(depth);
        view.rejected = view.rejected.saturating_add(rejected);
    }
    view
}

/// A zone of a gateway, and its last second.
struct ZoneNow<'r> {
    zone: &'r Zone,
    second: Option<&'r ZoneSample>,
}

impl<'r> ZoneNow<'r> {
    fn of(reading: &'r Reading, zone: &'r Zone) -> Self {
        let sample = reading.sample.as_ref();
        let second = sample.and_then(|sample| sample.zone(&zone.name));
        Self { zone, second }
    }

    fn depth(&self) -> u64 {
        self.second.map_or(self.zone.depth, |second| second.depth)
    }

    fn rejected(&self) -> u64 {
        self.second.map_or(0, |second| second.rejected)
    }

    /// The rate in force for keys without a plan.
    fn rate(&self) -> &'r Plain {
        let overridden = self.zone.overridden.as_ref();
        overridden
            .and_then(|it| it.rate.as_ref())
            .unwrap_or(&self.zone.rate)
    }

    fn part(&self, gateway: &Plain) -> FleetZonePart {
        let waited = self
            .second
            .map_or(self.zone.oldest_wait_seconds, |it| it.oldest_wait);
        FleetZonePart {
            gateway: gateway.clone(),
            out: self.second.map_or(0, ZoneSample::out),
            rejected: self.rejected(),
            depth: self.depth(),
            oldest_wait: waited,
        }
    }
}

/// The zones, in the order of the first gateway that has each.
fn zones(named: &[Named]) -> Vec<FleetZone> {
    let mut zones: Vec<FleetZone> = Vec::new();
    for Named { name, reading, .. } in named {
        for zone in &reading.zones {
            let now = ZoneNow::of(reading, zone);
            let at = index(
                &mut zones,
                |it| it.name == zone.name,
                || FleetZone {
                    name: zone.name.clone(),
                    store: zone.store.clone(),
                    ..FleetZone::default()
                },
            );
            let sums = &mut zones[at];
            let part = now.part(name);
            add_once(&mut sums.rates, now.rate());
            sums.out = sums.out.saturating_add(part.out);
            sums.rejected = sums.rejected.saturating_add(part.rejected);
            sums.depth = sums.depth.saturating_add(part.depth);
            sums.oldest_wait = sums.oldest_wait.max(part.oldest_wait);
            sums.parts.push(part);
        }
    }
    zones
}

/// A gate of a gateway, and its last second.
struct GateNow<'r> {
    gate: &'r Gate,
    second: Option<&'r GateSample>,
}

impl<'r> GateNow<'r> {
    fn of(reading: &'r Reading, origin: &'r Origin) -> Option<Self> {
        let sample = reading.sample.as_ref();
        let second = sample.and_then(|sample| sample.origin(&origin.name)?.gate.as_ref());
        let gate = origin.gate.as_ref()?;
        Some(Self { gate, second })
    }

    fn depth(&self) -> u64 {
        self.second.map_or(self.gate.queue_depth, |it| it.depth)
    }

    fn rejected(&self) -> u64 {
        sum(self
            .second
            .iter()
            .flat_map(|it| it.rejected.values().copied()))
    }
}

/// The gates, in the order of the first gateway that has each.
fn gates(named: &[Named]) -> Vec<FleetGate> {
    let mut gates: Vec<FleetGate> = Vec::new();
    for named in named {
        for origin in &named.reading.origins {
            let Some(now) = GateNow::of(named.reading, origin) else {
                continue;
            };
            let at = index(
                &mut gates,
                |it| it.origin == origin.name,
                || FleetGate {
                    origin: origin.name.clone(),
                    ..FleetGate::default()
                },
            );
            let sharing = now.gate.sharing.as_ref();
            let sent = named
                .member
                .pace
                .sent(&origin.name)
                .map(|it| rounded(it.pace));
            let sums = &mut gates[at];
            let rate = now.gate.rate.now.as_ref().or(now.gate.rate.file.as_ref());
            if let Some(rate) = rate {
                add_once(&mut sums.rates, rate);
            }
            sums.shared |= sharing.is_some();
            sums.gateways = sums.gateways.max(sharing.and_then(|it| it.gateways));
            sums.sent = sent
                .map(|sent| rounded(sums.sent.unwrap_or(0.0) + sent))
                .or(sums.sent);
            sums.depth = sums.depth.saturating_add(now.depth());
            sums.in_flight = sums.in_flight.saturating_add(origin.in_flight);
            sums.rejected = sums.rejected.saturating_add(now.rejected());
            sums.parts.push(FleetGatePart {
                gateway: named.name.clone(),
                part: sharing.map(|it| it.part),
                alone: sharing.is_some_and(|it| it.alone),
                sent,
                depth: now.depth(),
                in_flight: origin.in_flight,
                rejected: now.rejected(),
            });
        }
    }
    gates
}

/// The places that gateways share.
///
/// Each gateway tells what the store counted a moment ago. The most withheld places are the news,
/// with what else that gateway was told at the time.
fn places(named: &[Named]) -> Vec<FleetPlaces> {
    let mut all: Vec<FleetPlaces> = Vec::new();
    for Named { name, reading, .. } in named {
        for origin in &reading.origins {
            let Some(own) = &origin.places else {
                continue;
            };
            let at = index(
                &mut all,
                |it| it.origin == origin.name,
                || FleetPlaces {
                    origin: origin.name.clone(),
                    ..FleetPlaces::default()
                },
            );
            let sums = &mut all[at];
            if sums.parts.is_empty() || own.withheld > sums.withheld {
                sums.of = own.of;
                sums.withheld = own.withheld;
                sums.free = own.free;
                sums.gateways = own.gateways;
            }
            sums.held = sums.held.saturating_add(own.held);
            sums.in_use = sums.in_use.saturating_add(own.in_use);
            sums.parts.push(FleetPlacesPart {
                gateway: (*name).clone(),
                held: own.held,
                in_use: own.in_use,
            });
        }
    }
    for sums in &mut all {
        if sums.gateways > sums.parts.len() as u64 {
            let known = [sums.held, sums.free, sums.withheld];
            sums.elsewhere = sums.of.saturating_sub(sum(known.into_iter()));
        }
    }
    all
}

/// Where something is in a list. If it is not there, it is added.
pub(super) fn index<T>(
    all: &mut Vec<T>,
    is_it: impl Fn(&T) -> bool,
    new: impl FnOnce() -> T,
) -> usize {
    let known = all.iter().position(is_it);
    known.unwrap_or_else(|| {
        all.push(new());
        all.len() - 1
    })
}

fn add_once(all: &mut Vec<Plain>, one: &Plain) {
    if !all.contains(one) {
        all.push(one.clone());
    }
}

/// Counts come from other hosts, so that they may be any numbers.
fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

/// To a tenth.
fn rounded(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}
