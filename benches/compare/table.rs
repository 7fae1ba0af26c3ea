//! Tables of the cost of a request: a row for each peer, a few columns for each measurement.

use crate::cost::Rounds;
use crate::peers::Kind;
use crate::report::Report;
use crate::support::figures::{Figure, cell};

/// The rounds of all peers in one measurement.
#[derive(Debug)]
pub struct Measured {
    /// The heading of its columns, also used in the picture.
    pub name: String,
    /// The name in the summary.
    pub title: String,
    pub rounds: Vec<Rounds>,
    /// Whether the table shows the requests answered a second.
    pub rate: bool,
}

impl Measured {
    pub fn new(name: &str, title: &str, rounds: Vec<Rounds>) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            rounds,
            rate: true,
        }
    }

    fn nginx(&self) -> Option<&Rounds> {
        self.rounds.iter().find(|peer| peer.kind == Kind::Nginx)
    }
}

/// Writes the table, the bars of its picture and the lines of the summary.
///
/// All measurements have the same peers.
pub fn write(report: &mut Report, title: &str, panel: &'static str, all: &[Measured]) {
    let Some(first) = all.first() else {
        return;
    };
    let mut head = vec![title.to_owned()];
    for measured in all {
        head.push(format!("{}, µs", measured.name));
        head.push("beside nginx".to_owned());
        if measured.rate {
            head.push("a second".to_owned());
        }
    }
    let rows = first.rounds.iter().enumerate().map(|(index, peer)| {
        let mut row = vec![peer.kind.to_string()];
        for measured in all {
            let rounds = &measured.rounds[index];
            let beside = measured
                .nginx()
                .and_then(|nginx| Figure::ratio(&rounds.micros, &nginx.micros));
            row.push(cell(rounds.figure(), 1));
            row.push(cell(beside, 2));
            if measured.rate {
                row.push(cell(Figure::of(&rounds.rate), 0));
            }
        }
        row
    });
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    report.table("cost", &head, &rows.collect::<Vec<_>>());
    for measured in all {
        report.bars(panel, &measured.name, &measured.rounds);
        let micros = measured.rounds.iter();
        let micros = micros.map(|peer| (peer.kind, peer.micros.clone()));
        report.summary(&measured.title, "µs", micros.collect());
    }
}
