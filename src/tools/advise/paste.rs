//! Formats the advice as lines to paste into a `gateway.toml`.

use config::{KeyTemplate, Part, Variable, toml_string};

use super::advice::{Advice, Choice};
use super::fit::Fit;
use super::survey::Survey;

/// Length of a zone's name from which no parts are added, and its maximum length.
const LONG_NAME: usize = 40;
const MAX_NAME: usize = 60;

/// Returns a route's limit and its zone, to append to a file whose last table is the route.
pub fn toml(advice: &Advice) -> String {
    let survey = &advice.survey;
    format!(
        "{}\n[zones.{}]\nkey = {}\nrate = {}\n",
        limit(advice),
        title(&zone_of(survey)),
        toml_string(&survey.template.to_string()),
        toml_string(&advice.chosen().recommended.rate.to_string()),
    )
}

/// Returns the field of a route that limits it, with the alternative numbers as a comment.
pub(super) fn limit(advice: &Advice) -> String {
    let Choice {
        recommended: Fit { burst, .. },
        alternative,
    } = advice.chosen();
    let name = advice.busiest().map_or("", |key| &key.shown);
    let other = alternative.map_or(String::new(), |Fit { rate, burst, .. }| {
        if advice.ignores_busiest() {
            format!("# Made without {name}. With it: rate = \"{rate}\", burst = {burst}.\n")
        } else {
            format!("# Made for all. Without {name}: rate = \"{rate}\", burst = {burst}.\n")
        }
    });
    let zone = toml_string(&zone_of(&advice.survey));
    format!("{other}limits = [{{ zone = {zone}, burst = {burst}, nodelay = true }}]\n")
}

/// Returns the name of the advised zone.
pub(super) fn zone_of(survey: &Survey) -> String {
    let zone = survey.zone.clone();
    zone.unwrap_or_else(|| zone_name(&survey.template))
}

/// Formats a name as part of a table's title.
pub(super) fn title(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if !name.is_empty() && name.chars().all(is_bare) {
        name.to_owned()
    } else {
        toml_string(name)
    }
}

/// Makes a zone name of letters, digits and `_` from the parts of the key.
fn zone_name(template: &KeyTemplate) -> String {
    if let [Part::Variable(Variable::RemoteAddr)] = template.parts() {
        return "per_client".to_owned();
    }
    let mut name = "per".to_owned();
    let text = template.to_string().to_ascii_lowercase();
    for part in text.split(|c: char| !c.is_ascii_alphanumeric()) {
        if !part.is_empty() && name.len() < LONG_NAME {
            name.push('_');
            name.push_str(part);
        }
    }
    name.truncate(MAX_NAME);
    name
}
