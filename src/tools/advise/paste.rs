//! Formats the advice as lines to paste into a `gateway.toml`.

use config::{KeyTemplate, Part, Variable, toml_string};

use super::advice::{Advice, Choice};
use super::fit::Fit;
use super::survey::Survey;

/// Length of a zone's name at which no further part of the key is added to it.
const LONG_NAME: usize = 40;
/// Maximum length of a zone's name. A longer one is truncated.
const MAX_NAME: usize = 60;

/// Returns a route's limit and its zone, to append to a file whose last table is the route.
pub fn toml_to_paste(advice: &Advice) -> String {
    let survey = &advice.survey;
    format!(
        "{}\n[zones.{}]\nkey = {}\nrate = {}\n",
        limits_field(advice),
        table_name(&zone_name(survey)),
        toml_string(&survey.template.to_string()),
        toml_string(&advice.choice().recommended.rate.to_string()),
    )
}

/// Returns the field `limits` of a route, below a comment with the alternative rate and burst.
pub(super) fn limits_field(advice: &Advice) -> String {
    let Choice {
        recommended: Fit { burst, .. },
        alternative,
    } = advice.choice();
    let busiest = advice.busiest().map_or("", |key| &key.shown);
    let comment = alternative.map_or(String::new(), |Fit { rate, burst, .. }| {
        if advice.ignores_busiest() {
            format!("# Made without {busiest}. With it: rate = \"{rate}\", burst = {burst}.\n")
        } else {
            format!("# Made for all. Without {busiest}: rate = \"{rate}\", burst = {burst}.\n")
        }
    });
    let zone = toml_string(&zone_name(&advice.survey));
    format!("{comment}limits = [{{ zone = {zone}, burst = {burst}, nodelay = true }}]\n")
}

/// Returns the name of the zone to paste: the requested zone, or a name made from the key.
pub(super) fn zone_name(survey: &Survey) -> String {
    let requested = survey.zone.clone();
    requested.unwrap_or_else(|| name_by_key(&survey.template))
}

/// Formats a name for a table's title in TOML, with quotes if it needs them.
pub(super) fn table_name(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if !name.is_empty() && name.chars().all(is_bare) {
        name.to_owned()
    } else {
        toml_string(name)
    }
}

/// Makes a zone name of letters, digits and `_` from the parts of the key.
fn name_by_key(template: &KeyTemplate) -> String {
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
