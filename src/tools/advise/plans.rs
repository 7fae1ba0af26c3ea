//! The advice for the keys of each plan.

use std::fmt::Write;
use std::io;

use super::group::Counted;
use super::pace::recommend;
use super::survey::Surveyed;
use super::trial::Trial;
use super::windows::headings;
use crate::config::toml_string;
use crate::tools::shown::percent;

/// The recommended rate and burst of the keys of a plan.
pub(super) struct PlanAdvice {
    /// The index of the plan among those of the survey.
    plan: usize,
    /// `None` if none of its requests is in the good hours.
    chosen: Option<Trial>,
}

impl PlanAdvice {
    /// Whether there is something to recommend.
    pub(super) fn has_any(&self) -> bool {
        self.chosen.is_some()
    }

    /// The advice for each plan of the survey.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read.
    pub(super) fn all(survey: &Surveyed) -> io::Result<Vec<Self>> {
        let plans = survey.plans.iter().enumerate();
        let advice = |(plan, (_, counted)): (usize, &(String, Counted))| {
            let chosen = recommend(counted)?.map(|pace| pace.chosen);
            Ok(Self { plan, chosen })
        };
        plans.map(advice).collect()
    }
}

/// What the keys of each plan do, as a table. Writes nothing without plans.
pub(super) fn table(text: &mut String, survey: &Surveyed, advice: &[PlanAdvice]) {
    if advice.is_empty() {
        return;
    }
    // Writing to a String cannot fail, here and below.
    let _ = write!(text, "\n{:<24}{:>8}{:>10}", "by plan", "keys", "requests");
    text.push_str(&headings());
    let _ = writeln!(text, "{:>12}{:>8}{:>10}", "rate", "burst", "delayed");
    for PlanAdvice { plan, chosen } in advice {
        let (name, counted) = &survey.plans[*plan];
        let (keys, requests) = (counted.keys.count, counted.requests());
        let _ = write!(text, "{name:<24}{keys:>8}{requests:>10}");
        let peaks = std::array::from_fn(|width| counted.keys.spreads[width].peak());
        text.push_str(&survey.peaks(peaks));
        let _ = match chosen {
            Some(trial) => {
                let (rate, burst) = (trial.candidate.rate.to_string(), trial.candidate.burst);
                let delayed = percent(trial.share_delayed());
                writeln!(text, "{rate:>12}{burst:>8}{delayed:>10}")
            }
            None => writeln!(text, "{:>12}{:>8}{:>10}", "-", "-", "-"),
        };
    }
    text.push_str(
        "(The most requests of one of its keys within each time, and the rate and burst that fit these keys, found as\n\
         those of the zone. What is said of the zone is of the keys without a plan.)\n",
    );
}

/// Lines for the tables of the plans; `None` if there is nothing to say.
pub(super) fn toml(survey: &Surveyed, zone: &str, advice: &[PlanAdvice]) -> Option<String> {
    let lines = |advice: &PlanAdvice| {
        let name = title(&survey.plans[advice.plan].0);
        let candidate = advice.chosen.as_ref()?.candidate;
        let rate = toml_string(&candidate.rate.to_string());
        let zone = title(zone);
        Some(format!(
            "[zones.{zone}.plans.{name}]\nrate = {rate}\nburst = {}\n",
            candidate.burst
        ))
    };
    let tables: Vec<String> = advice.iter().filter_map(lines).collect();
    (!tables.is_empty()).then(|| tables.join("\n"))
}

/// A name as a part of a table's title.
pub(super) fn title(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if !name.is_empty() && name.chars().all(is_bare) {
        name.to_owned()
    } else {
        toml_string(name)
    }
}
