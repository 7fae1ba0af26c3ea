//! The advice for the keys of each plan.

use config::toml_string;

use super::advice::Advice;
use super::fit::Fit;

/// Lines for the tables of the plans; `None` without plans.
pub(super) fn toml(advice: &Advice, zone: &str) -> Option<String> {
    let lines = |((name, _), fit): (&(String, _), &Option<Fit>)| {
        let fit = (*fit)?;
        Some(format!(
            "[zones.{}.plans.{}]\nrate = {}\nburst = {}\n",
            title(zone),
            title(name),
            toml_string(&fit.rate.to_string()),
            fit.burst
        ))
    };
    let plans = advice.survey.plans.iter().zip(&advice.plans);
    let tables: Vec<String> = plans.filter_map(lines).collect();
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
