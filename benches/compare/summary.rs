//! All rows of a run in one table: drip, nginx, and the ratio of drip to nginx.

use crate::peers::Kind;
use crate::support::figures::{Figure, cell};
use crate::support::page;

/// The rounds of each peer in one row.
#[derive(Debug)]
pub struct Line {
    pub name: String,
    pub unit: &'static str,
    pub rounds: Vec<(Kind, Vec<f64>)>,
}

impl Line {
    /// Returns the rounds of a peer; `None` if it was not measured.
    fn rounds_of(&self, kind: Kind) -> Option<&[f64]> {
        let mut rounds = self.rounds.iter();
        let (_, rounds) = rounds.find(|(peer, _)| *peer == kind)?;
        Some(rounds)
    }

    fn median(&self, kind: Kind) -> String {
        let median = self.rounds_of(kind).and_then(Figure::of);
        median.map_or_else(dash, |figure| {
            let text = format!("{} {}", digits(figure.median), self.unit);
            text.trim_end().to_owned()
        })
    }

    fn ratio(&self, ours: Kind, theirs: Kind) -> String {
        let ratio = self.rounds_of(ours).zip(self.rounds_of(theirs));
        cell(
            ratio.and_then(|(ours, theirs)| Figure::ratio(ours, theirs)),
            2,
        )
    }
}

/// The table; empty if nothing was compared.
pub fn table(lines: &[Line]) -> String {
    const SHOWN: [Kind; 4] = [Kind::Drip, Kind::Before, Kind::Nginx, Kind::Lean];
    const RATIOS: [(Kind, Kind); 4] = [
        (Kind::Drip, Kind::Nginx),
        (Kind::Before, Kind::Nginx),
        (Kind::Lean, Kind::Nginx),
        (Kind::Drip, Kind::Before),
    ];
    let is_measured = |kind: Kind| lines.iter().any(|line| line.rounds_of(kind).is_some());
    let kinds = SHOWN.into_iter().filter(|kind| is_measured(*kind));
    let kinds: Vec<Kind> = kinds.collect();
    let ratios = RATIOS
        .into_iter()
        .filter(|(ours, theirs)| is_measured(*ours) && is_measured(*theirs));
    let ratios: Vec<(Kind, Kind)> = ratios.collect();
    if ratios.is_empty() {
        return String::new();
    }
    let mut head = vec!["median of the rounds".to_owned()];
    head.extend(kinds.iter().map(Kind::to_string));
    head.extend(
        ratios
            .iter()
            .map(|(ours, theirs)| format!("{ours} beside {theirs}")),
    );
    let rows = lines.iter().map(|line| {
        let mut row = vec![line.name.clone()];
        row.extend(kinds.iter().map(|kind| line.median(*kind)));
        row.extend(
            ratios
                .iter()
                .map(|(ours, theirs)| line.ratio(*ours, *theirs)),
        );
        row
    });
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    page::table(&head, &rows.collect::<Vec<_>>())
}

/// A number with about three significant digits.
fn digits(value: f64) -> String {
    if value < 1.0 {
        format!("{value:.3}")
    } else if value < 10.0 {
        format!("{value:.2}")
    } else if value < 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

fn dash() -> String {
    "—".to_owned()
}
