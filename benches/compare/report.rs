//! Shows the results on the terminal, and writes them to benches/README.md and benches/plots.

use std::collections::BTreeMap;
use std::io;

use crate::arguments::{Arguments, Part};
use crate::cost::Rounds;
use crate::peers::Kind;
use crate::summary::{self, Line};
use crate::support::plot::{Chart, Panel};
use crate::support::{machine, page};

const PAGE: &str = "README.md";

/// The report of one run.
#[derive(Debug, Default)]
pub struct Report {
    /// Whether it goes into the page.
    is_for_page: bool,
    /// Names of the requested parts.
    requested: Vec<&'static str>,
    machine: String,
    parts: BTreeMap<&'static str, String>,
    costs: Vec<Bars>,
    /// Memory that the peers hold.
    held: Vec<Bars>,
    streams: Vec<Stream>,
    lines: Vec<Line>,
    notes: Vec<String>,
}

/// A group of bars in a picture.
#[derive(Debug)]
struct Bars {
    panel: &'static str,
    name: String,
    figures: Vec<(Kind, f64)>,
}

/// A key's requests as they arrived at the origin.
#[derive(Debug)]
pub struct Stream {
    /// The peer that paced them.
    pub peer: String,
    /// Their rate.
    pub name: String,
    pub variation: f64,
    /// The arrival times of the first requests, in milliseconds.
    pub glimpse: Vec<f64>,
}

/// Prints what is measured now.
pub fn step(what: &str) {
    println!("\n{what} …");
}

impl Report {
    /// Begins the report of a run.
    ///
    /// Only the requested parts go into the page. Everything else that the run measures goes to the
    /// terminal only.
    pub fn begin(is_for_page: bool, arguments: &Arguments, present: &[Kind]) -> Self {
        let versions = present.iter().filter_map(|kind| kind.version());
        let versions = versions.collect::<Vec<_>>().join(", ");
        let mut machine = vec![format!("{}; {versions}.", machine::describe())];
        let missing = |kind: &Kind| !present.contains(kind) && !kind.is_extra();
        for kind in Kind::ALL.into_iter().filter(missing) {
            if arguments.wants_peer(kind) {
                machine.push(format!("Not here: {kind} ({}).", kind.remedy()));
            }
        }
        let machine = machine.join(" ");
        println!("{machine}");
        Self {
            is_for_page,
            requested: arguments.parts.iter().map(|part| part.name()).collect(),
            machine,
            ..Self::default()
        }
    }

    /// Reports something unexpected.
    pub fn note(&mut self, what: &str) {
        println!("! {what}");
        self.notes.push(what.trim().to_owned());
    }

    /// Adds text to a part of the page.
    pub fn text(&mut self, part: &'static str, text: &str) {
        print!("{text}");
        if !self.requested.contains(&part) {
            return;
        }
        let all = self.parts.entry(part).or_default();
        all.push_str(text);
        all.push('\n');
    }

    /// Adds a table to a part of the page.
    pub fn table(&mut self, part: &'static str, head: &[&str], rows: &[Vec<String>]) {
        self.text(part, &page::table(head, rows));
    }

    /// Adds the costs of a request to one of the picture's panels.
    pub fn bars(&mut self, panel: &'static str, name: &str, all: &[Rounds]) {
        let figures = all
            .iter()
            .filter_map(|peer| Some((peer.kind, peer.figure()?.median)));
        let bars = Bars {
            panel,
            name: name.to_owned(),
            figures: figures.collect(),
        };
        self.costs.push(bars);
    }

    /// Adds memory figures, in `unit`.
    pub fn memory(&mut self, name: &'static str, unit: &'static str, held: &[(Kind, f64)]) {
        let bars = Bars {
            panel: name,
            name: unit.to_owned(),
            figures: held.to_vec(),
        };
        self.held.push(bars);
        let rounds = held.iter().map(|(kind, value)| (*kind, vec![*value]));
        self.summary(&format!("memory: {name}"), unit, rounds.collect());
    }

    /// Adds a row of the summary: the rounds of each peer.
    pub fn summary(&mut self, name: &str, unit: &'static str, rounds: Vec<(Kind, Vec<f64>)>) {
        self.lines.push(Line {
            name: name.to_owned(),
            unit,
            rounds,
        });
    }

    pub fn stream(&mut self, stream: Stream) {
        self.streams.push(stream);
    }

    /// Writes the page and the plots.
    pub fn end(mut self) -> io::Result<()> {
        let summary = summary::table(&self.lines);
        println!("\nIn short:\n{summary}");
        if !self.is_for_page {
            println!("benches/README.md and its plots stay as they are");
            return Ok(());
        }
        // A run of some parts would leave a summary with only their rows.
        if Part::ALL
            .iter()
            .all(|part| self.requested.contains(&part.name()))
        {
            self.parts.insert("summary", summary);
        }
        let readme = page::path(PAGE);
        let notes = self
            .notes
            .iter()
            .map(|note| format!("\n- Otherwise than it should: {note}"));
        let about = format!("{}\n{}", self.machine, notes.collect::<String>());
        self.parts.insert("machine", about);
        for (part, text) in &self.parts {
            page::replace(&readme, part, text)?;
        }
        let save = |name: &str, chart: &Chart| chart.save(page::path("plots").join(name));
        if self.parts.contains_key("cost") {
            save("cost.svg", &self.cost())?;
        }
        if self.parts.contains_key("evenness") {
            save("evenness.svg", &self.evenness())?;
        }
        if self.parts.contains_key("memory") {
            save("memory.svg", &self.memory_held())?;
        }
        println!("\nwritten: benches/{PAGE}, benches/plots");
        Ok(())
    }

    fn cost(&self) -> Chart {
        let mut panels: Vec<&str> = self.costs.iter().map(|bars| bars.panel).collect();
        panels.dedup();
        let chart = Chart::new("What a request costs the proxy").subtitle(&self.machine);
        panels.into_iter().fold(chart, |chart, name| {
            let bars = self.costs.iter().filter(|bars| bars.panel == name);
            chart.panel(by_peer(name, &bars.collect::<Vec<_>>()))
        })
    }

    fn memory_held(&self) -> Chart {
        let chart = Chart::new("What a proxy holds in memory").subtitle(&self.machine);
        self.held.iter().fold(chart, |chart, bars| {
            let peers = bars.figures.iter().map(|(kind, _)| kind.to_string());
            let points = points(bars.figures.iter().map(|(_, value)| *value));
            let panel = Panel::new(bars.panel).x_names(peers).height(110);
            chart.panel(panel.bars(bars.name.as_str(), &points))
        })
    }

    fn evenness(&self) -> Chart {
        let mut names: Vec<&str> = Vec::new();
        for stream in &self.streams {
            if !names.contains(&stream.name.as_str()) {
                names.push(&stream.name);
            }
        }
        let mut all: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
        for stream in &self.streams {
            let index = names
                .iter()
                .position(|name| *name == stream.name)
                .unwrap_or_default();
            all.entry(&stream.peer)
                .or_default()
                .push((coordinate(index), stream.variation));
        }
        let mut bars = Panel::new("variation of the gaps: 0 is perfectly even")
            .x_names(names.iter().copied())
            .height(220);
        for (peer, points) in &all {
            bars = bars.bars(*peer, points);
        }
        let mut close = Panel::new("requests so far, at 2000r/s")
            .x_label("ms")
            .height(220);
        for stream in self
            .streams
            .iter()
            .filter(|stream| stream.name == "2000r/s")
        {
            let steps: Vec<(f64, f64)> = stream
                .glimpse
                .iter()
                .enumerate()
                .map(|(count, at)| (*at, coordinate(count + 1)))
                .collect();
            close = close.step(stream.peer.as_str(), &steps);
        }
        Chart::new("How evenly requests reach the origin")
            .subtitle(&self.machine)
            .panel(bars)
            .panel(close)
    }
}

/// One series of bars for each peer.
fn by_peer(name: &str, bars: &[&Bars]) -> Panel {
    let names = bars.iter().map(|bars| bars.name.as_str());
    let panel = Panel::new(name).x_names(names).height(200);
    Kind::ALL.iter().fold(panel, |panel, kind| {
        let points: Vec<(f64, f64)> = bars
            .iter()
            .enumerate()
            .filter_map(|(index, bars)| {
                let (_, value) = bars.figures.iter().find(|(peer, _)| peer == kind)?;
                Some((coordinate(index), *value))
            })
            .collect();
        if points.is_empty() {
            return panel;
        }
        panel.bars(kind.to_string(), &points)
    })
}

fn points(values: impl Iterator<Item = f64>) -> Vec<(f64, f64)> {
    values
        .enumerate()
        .map(|(index, value)| (coordinate(index), value))
        .collect()
}

/// Returns an index or a count as a coordinate.
fn coordinate(index: usize) -> f64 {
    crate::support::figures::float(index as u64)
}
