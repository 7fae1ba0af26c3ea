//! The budget: the maximum of each figure, and its comparison with the measured value.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use toml::Table;

/// A group of figures, a table of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    Instructions,
    /// Instructions of a build with thin LTO.
    ThinInstructions,
    Allocations,
    ClockReads,
    Bytes,
    Sizes,
}

impl Group {
    pub const ALL: [Self; 6] = [
        Self::Instructions,
        Self::ThinInstructions,
        Self::Allocations,
        Self::ClockReads,
        Self::Bytes,
        Self::Sizes,
    ];

    /// Returns the name of the group's table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::ThinInstructions => "thin_instructions",
            Self::Allocations => "allocations",
            Self::ClockReads => "clock_reads",
            Self::Bytes => "bytes",
            Self::Sizes => "sizes",
        }
    }

    /// Returns the comment of the group's table.
    fn comment(self) -> &'static str {
        match self {
            Self::Instructions => "of a worker for one request, as packages are built, within 2 %",
            Self::ThinInstructions => "the same of a build with thin LTO, within 2 %",
            Self::Allocations => "calls of the allocator for one request, within 0.3",
            Self::ClockReads => "of a worker for one request, within 0.3",
            Self::Bytes => "of resident memory for each, within 3 %",
            Self::Sizes => "of what is kept while a request waits, in bytes, exact",
        }
    }

    /// Returns the tolerance of a figure.
    fn tolerance(self, budget: f64) -> f64 {
        match self {
            Self::Instructions | Self::ThinInstructions => budget * 0.02,
            Self::Bytes => budget * 0.03,
            // Allows for rare events such as a buffer that grows. One more event for each request
            // is always detected.
            Self::Allocations | Self::ClockReads => 0.3,
            Self::Sizes => 0.0,
        }
    }

    /// Returns the number of decimals in the file.
    fn decimals(self) -> usize {
        match self {
            Self::Allocations | Self::ClockReads => 1,
            Self::Instructions | Self::ThinInstructions | Self::Bytes | Self::Sizes => 0,
        }
    }
}

/// Figures by group and name.
pub type Figures = BTreeMap<(Group, String), f64>;

/// The budget of a file.
///
/// # Errors
///
/// Returns what is wrong with the file.
pub fn parse(text: &str) -> Result<Figures, String> {
    let table: Table = text.parse().map_err(|error| format!("{error}"))?;
    let mut figures = Figures::new();
    for (title, entries) in &table {
        let group = Group::ALL.into_iter().find(|group| group.name() == title);
        let group = group.ok_or_else(|| format!("no group is called {title}"))?;
        let entries = entries
            .as_table()
            .ok_or_else(|| format!("{title} is no table"))?;
        for (name, value) in entries {
            let value = value.clone().try_into::<f64>();
            let value = value.map_err(|_| format!("{title}.{name} is no number"))?;
            figures.insert((group, name.clone()), value);
        }
    }
    Ok(figures)
}

/// Returns the text of a file with these figures.
pub fn write(figures: &Figures) -> String {
    let mut text = String::from(
        "# What a request and what is kept may cost; CONTRIBUTING.md says how to look and how to raise a figure.\n\
         # Written by `cargo bench --profile dev --bench budget -- --write`.\n",
    );
    for group in Group::ALL {
        // Writing to a string does not fail.
        let _taken = write!(text, "\n# {}\n[{}]\n", group.comment(), group.name());
        for ((_, name), value) in figures
            .iter()
            .filter(|((figure_group, _), _)| *figure_group == group)
        {
            let _taken = writeln!(text, "{}", line(group, name, *value));
        }
    }
    text
}

fn line(group: Group, name: &str, value: f64) -> String {
    format!("{name} = {value:.*}", group.decimals())
}

/// Result of comparing a figure with its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Within,
    /// More than the tolerance above, or without a budget.
    Above,
    /// More than the tolerance below.
    Below,
}

/// A figure beside its budget.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub group: Group,
    pub name: String,
    /// `None` if the file has no such figure.
    pub budget: Option<f64>,
    /// `None` if nothing measures the figure.
    pub measured: Option<f64>,
}

impl Row {
    pub fn verdict(&self) -> Verdict {
        // A budget that nothing measures, or a figure without a budget, must be corrected in the
        // file.
        let (Some(budget), Some(measured)) = (self.budget, self.measured) else {
            return Verdict::Above;
        };
        let tolerance = self.group.tolerance(budget);
        if measured > budget + tolerance {
            Verdict::Above
        } else if measured < budget - tolerance {
            Verdict::Below
        } else {
            Verdict::Within
        }
    }

    /// Returns the line for the file, with its table.
    pub fn line(&self) -> String {
        let group = self.group;
        let line = self
            .measured
            .map(|measured| line(group, &self.name, measured));
        format!("[{}] {}", group.name(), line.unwrap_or_default())
    }

    /// Returns a line of the closing table.
    pub fn table_line(&self) -> String {
        let decimals = self.group.decimals();
        let cell = |figure: Option<f64>| {
            figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.decimals$}"))
        };
        let both = self.budget.zip(self.measured);
        let percent = both.map(|(budget, measured)| 100.0 * (measured - budget) / budget);
        let percent = percent.map_or_else(String::new, |percent| format!("{percent:+.2} %"));
        let verdict = match self.verdict() {
            Verdict::Within => "",
            Verdict::Above => "ABOVE",
            Verdict::Below => "below",
        };
        let (budget, measured) = (cell(self.budget), cell(self.measured));
        let line = format!(
            "  {:18} {measured:>8} {budget:>8} {percent:>9}  {verdict}",
            self.name
        );
        line.trim_end().to_owned()
    }
}

/// Formats the figure, and its distance from the budget.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = self.group.decimals();
        write!(f, "{}.{}: ", self.group.name(), self.name)?;
        match (self.budget, self.measured) {
            (Some(budget), Some(measured)) => {
                let by = measured - budget;
                write!(f, "{measured:.decimals$}, budget {budget:.decimals$}, ")?;
                write!(f, "{by:+.decimals$} ({:+.2} %)", 100.0 * by / budget)
            }
            (None, Some(measured)) => write!(f, "{measured:.decimals$}, no budget"),
            (_, None) => write!(f, "not measured"),
        }
    }
}

/// Returns the figures for which `is_selected` is true, each beside its budget.
pub fn rows(
    budget: &Figures,
    measured: &Figures,
    is_selected: impl Fn(Group, &str) -> bool,
) -> Vec<Row> {
    let mut keys: Vec<_> = budget.keys().chain(measured.keys()).collect();
    keys.sort();
    keys.dedup();
    let keys = keys
        .into_iter()
        .filter(|(group, name)| is_selected(*group, name));
    let rows = keys.map(|key| Row {
        group: key.0,
        name: key.1.clone(),
        budget: budget.get(key).copied(),
        measured: measured.get(key).copied(),
    });
    rows.collect()
}
