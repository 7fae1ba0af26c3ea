//! The picture as rows: sums, and below each what every gateway has of it.

use std::iter;

use crate::status::headline::words::count;
use crate::status::views::{
    Fleet, FleetGate, FleetGateway, FleetKey, FleetPlaces, FleetZone, Headline, Plain,
};
use crate::tools::top::columns::columns;
use crate::tools::top::view::numbers::wait;

/// A table of the picture.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// The titles of its columns.
    pub(super) titles: &'static str,
    /// The columns that are texts.
    left: &'static [usize],
    pub(super) items: Vec<Item>,
}

/// A line of a table, and what each gateway has of it.
#[derive(Clone, Debug)]
pub(super) struct Item {
    cells: Vec<String>,
    parts: Vec<Vec<String>>,
    pub(super) is_bad: bool,
}

/// A section as text: the titles, and each item with its parts, all aligned.
pub(super) struct Aligned {
    pub(super) titles: String,
    pub(super) items: Vec<(String, Vec<String>)>,
}

/// The tables that have anything to show.
pub(super) fn sections(fleet: &Fleet) -> Vec<Section> {
    let all = [
        Section {
            titles: "gateway, version, answers/s, in flight, waiting, rej/s, clock, says",
            left: &[0, 1, 7],
            items: fleet.gateways.iter().map(gateway).collect(),
        },
        Section {
            titles: "zone, store, rate, out/s, rej/s, waiting, oldest",
            left: &[0, 1],
            items: fleet.zones.iter().map(zone).collect(),
        },
        Section {
            titles: "gate, rate, part, sent/s, waiting, in flight, rej/s",
            left: &[0],
            items: fleet.gates.iter().map(gate).collect(),
        },
        Section {
            titles: "places, of, in use, held, free, withheld",
            left: &[0],
            items: fleet.places.iter().map(places).collect(),
        },
        Section {
            titles: "limited in, rejected/min, waiting, oldest, at, key",
            left: &[0, 4, 5],
            items: fleet.keys.iter().map(key).collect(),
        },
    ];
    let filled = all.into_iter().filter(|it| !it.items.is_empty());
    filled.collect()
}

impl Section {
    /// Its lines, aligned. Those of parts are indented.
    pub(super) fn aligned(&self) -> Aligned {
        let titles = self.titles.split(", ").map(str::to_owned).collect();
        let items = self.items.iter();
        let rows = items
            .flat_map(|it| iter::once(&it.cells).chain(&it.parts))
            .cloned();
        let rows: Vec<Vec<String>> = iter::once(titles).chain(rows).collect();
        let mut lines = columns(&rows, self.left).into_iter();
        let titles = lines.next().unwrap_or_default();
        let items = self.items.iter().map(|item| {
            let line = lines.next().unwrap_or_default();
            (line, lines.by_ref().take(item.parts.len()).collect())
        });
        Aligned {
            titles,
            items: items.collect(),
        }
    }
}

/// How many gateways there are, and how many of them answer.
pub(super) fn counts(fleet: &Fleet) -> String {
    let answering = fleet
        .gateways
        .iter()
        .filter(|it| it.state.as_str() == "answers");
    let same = fleet
        .gateways
        .iter()
        .filter(|it| it.state.as_str() == "same");
    let all = fleet.gateways.len() - same.count();
    format!(
        "{}, {} answering",
        count(all as u64, "gateway"),
        answering.count()
    )
}

/// The title, the evidence and the remedy of the headline, and the titles of the other findings.
pub(super) fn headline(headline: &Headline) -> Vec<String> {
    let parts = [&headline.title, &headline.evidence, &headline.remedy];
    let also = headline.also.iter().map(|title| format!("Also: {title}"));
    let parts = parts.into_iter().map(Plain::to_string).chain(also);
    parts.filter(|text| !text.is_empty()).collect()
}

/// The whole picture as text. It ends with a line feed.
pub(super) fn text(fleet: &Fleet) -> String {
    let mut lines = vec![counts(fleet)];
    lines.extend(headline(&fleet.headline));
    for section in sections(fleet) {
        let Aligned { titles, items } = section.aligned();
        lines.extend([String::new(), titles]);
        for (line, parts) in items {
            lines.push(line);
            lines.extend(parts);
        }
    }
    lines.join("\n") + "\n"
}

fn gateway(it: &FleetGateway) -> Item {
    let answers = it.state.as_str() == "answers";
    let number = |number: u64| number_or_dash(answers.then_some(number));
    let reason = it.reason.as_ref().map_or("", Plain::as_str);
    let says = match (it.state.as_str(), it.trouble()) {
        (_, Some(trouble)) => {
            let since = it.since.as_ref().map_or("", Plain::as_str);
            let since = since.split(['T', '.']).nth(1).unwrap_or(since);
            format!("{trouble} since {since} UTC: {reason}")
        }
        ("same", None) => reason.to_owned(),
        ("unknown", None) => "not read yet".to_owned(),
        _ if it.stopping => format!("stopping; {}", it.title),
        _ => it.title.to_string(),
    };
    let address = it.address.as_ref().filter(|address| **address != it.name);
    let address = address.map_or_else(String::new, |address| format!(" ({address})"));
    Item {
        cells: vec![
            format!("{}{address}", it.name),
            it.version.to_string(),
            number(it.answers),
            number(it.in_flight),
            number(it.depth),
            number(it.rejected),
            it.clock
                .map_or("-".to_owned(), |ahead| format!("{ahead:+.2}s")),
            says,
        ],
        parts: Vec::new(),
        is_bad: it.trouble().is_some() || it.severity.as_str() == "bad",
    }
}

fn zone(it: &FleetZone) -> Item {
    let parts = it.parts.iter().map(|part| {
        vec![
            indented(&part.gateway),
            String::new(),
            String::new(),
            part.out.to_string(),
            part.rejected.to_string(),
            part.depth.to_string(),
            wait(part.oldest_wait),
        ]
    });
    Item {
        cells: vec![
            it.name.to_string(),
            it.store.to_string(),
            listed(&it.rates),
            it.out.to_string(),
            it.rejected.to_string(),
            it.depth.to_string(),
            wait(it.oldest_wait),
        ],
        parts: parts.collect(),
        is_bad: it.rejected > 0,
    }
}

fn gate(it: &FleetGate) -> Item {
    let sent = |sent: Option<f64>| sent.map_or("-".to_owned(), |sent| format!("{sent:.1}"));
    let parts = it.parts.iter().map(|part| {
        let share = part.part.map(|part| format!("{:.0}%", part * 100.0));
        let share = share.unwrap_or("own".to_owned());
        let alone = if part.alone { "alone, " } else { "" };
        vec![
            indented(&part.gateway),
            String::new(),
            format!("{alone}{share}"),
            sent(part.sent),
            part.depth.to_string(),
            part.in_flight.to_string(),
            part.rejected.to_string(),
        ]
    });
    let shared = match it.gateways {
        Some(1) => "1 gateway".to_owned(),
        Some(count) => format!("{count} gateways"),
        None if it.shared => "shared".to_owned(),
        None => "each its own".to_owned(),
    };
    Item {
        cells: vec![
            it.origin.to_string(),
            listed(&it.rates),
            shared,
            sent(it.sent),
            it.depth.to_string(),
            it.in_flight.to_string(),
            it.rejected.to_string(),
        ],
        parts: parts.collect(),
        is_bad: it.rejected > 0 || it.parts.iter().any(|part| part.alone),
    }
}

fn places(it: &FleetPlaces) -> Item {
    let parts = it.parts.iter().map(|part| {
        vec![
            indented(&part.gateway),
            String::new(),
            part.in_use.to_string(),
            part.held.to_string(),
            String::new(),
            String::new(),
        ]
    });
    // With these the parts add up to what is held and withheld.
    let empty = String::new;
    let elsewhere = (it.elsewhere > 0).then(|| {
        let held = it.elsewhere.to_string();
        let name = "  (not read)".to_owned();
        vec![name, empty(), empty(), held, empty(), empty()]
    });
    let withheld = (it.withheld > 0).then(|| {
        let name = "  (vanished)".to_owned();
        let withheld = it.withheld.to_string();
        vec![name, empty(), empty(), empty(), empty(), withheld]
    });
    let held = it.held.saturating_add(it.elsewhere);
    let numbers = [it.of, it.in_use, held, it.free, it.withheld];
    let numbers = numbers.map(|number| number.to_string());
    Item {
        cells: iter::once(it.origin.to_string()).chain(numbers).collect(),
        parts: parts.chain(elsewhere).chain(withheld).collect(),
        is_bad: it.withheld > 0,
    }
}

fn key(it: &FleetKey) -> Item {
    let parts = it.parts.iter().map(|part| {
        vec![
            String::new(),
            part.rejections.to_string(),
            part.depth.to_string(),
            String::new(),
            part.gateway.to_string(),
            String::new(),
        ]
    });
    let gate = it.gate.as_ref().map(|origin| format!("gate of {origin}, "));
    let at = match &it.parts[..] {
        [only] => only.gateway.to_string(),
        several => format!("{} gateways", several.len()),
    };
    let plan = it.plan.as_ref().map(|plan| format!(" ({plan})"));
    // A masked name says nothing of the same name at another gateway.
    let masked = if it.masked {
        " (masked, of this gateway alone)"
    } else {
        ""
    };
    Item {
        cells: vec![
            format!("{}{}", gate.unwrap_or_default(), it.zone),
            it.rejections.to_string(),
            it.depth.to_string(),
            wait(it.oldest_wait),
            at,
            format!("{}{}{masked}", it.key, plan.unwrap_or_default()),
        ],
        // One part is the whole.
        parts: parts.filter(|_| it.parts.len() > 1).collect(),
        is_bad: false,
    }
}

fn indented(name: &Plain) -> String {
    format!("  {name}")
}

fn number_or_dash(number: Option<u64>) -> String {
    number.map_or("-".to_owned(), |number| number.to_string())
}

/// Rates in force: one, unless gateways differ.
fn listed(rates: &[Plain]) -> String {
    let rates: Vec<String> = rates.iter().map(Plain::to_string).collect();
    if rates.is_empty() {
        return "none".to_owned();
    }
    rates.join(" or ")
}
