//! The advice as lines of a `gateway.toml`.

use super::advice::Advice;
use super::gate::GateAdvice;
use super::group::Resolution;
use super::plans::title;
use super::survey::Surveyed;
use super::trial::Trial;
use crate::config::{KeyTemplate, Part, Variable, toml_string};
use crate::tools::shown::percent;

/// The limit of a route and its zone, to append to a file whose last table is the route.
///
/// `None` if there is no advice for keys without a plan.
#[must_use]
pub fn toml(advice: &Advice) -> Option<String> {
    let survey = &advice.survey;
    let chosen = advice.chosen()?;
    Some(format!(
        "{}\n[zones.{}]\nkey = {}\nrate = {}\n",
        limit(survey, chosen),
        title(&zone_of(survey)),
        toml_string(&survey.facts.template.to_string()),
        toml_string(&chosen.candidate.rate.to_string()),
    ))
}

/// The field of a route that limits it, and other ways to write it as comments.
pub(super) fn limit(survey: &Surveyed, chosen: &Trial) -> String {
    let (zone, burst) = (toml_string(&zone_of(survey)), chosen.candidate.burst);
    let with = |more: &str| format!("limits = [{{ zone = {zone}, burst = {burst}{more} }}]");
    let mut lines = with("") + "\n";
    if is_guess(survey, chosen) {
        let delay = chosen.delay_for(FEW_WAIT);
        if delay < burst {
            let offer = with(&format!(", delay = {delay}"));
            lines.extend([
                "# ",
                &offer,
                "    # no more than 5 % of these requests wait\n",
            ]);
        }
        lines.extend(["# ", &with(", nodelay = true"), "    # none waits\n"]);
    }
    lines
}

/// The share of requests that wait with the `delay` that is offered.
const FEW_WAIT: f64 = 0.05;
/// From this share of waiting requests on, the log's whole seconds matter.
const MANY_WAIT: f64 = 0.1;

/// Whether many requests wait only because the log has whole seconds, or perhaps so.
fn is_guess(survey: &Surveyed, chosen: &Trial) -> bool {
    survey.resolution() == Resolution::Second && chosen.share_delayed() >= MANY_WAIT
}

/// What to tell of the requests that wait, if a log in whole seconds has many; lines of text.
pub(super) fn guessed_waits(survey: &Surveyed, chosen: &Trial) -> Option<String> {
    is_guess(survey, chosen).then(|| {
        let (delayed, delay) = (percent(chosen.share_delayed()), chosen.delay_for(FEW_WAIT));
        let few = if delay < chosen.candidate.burst {
            format!("With delay = {delay}, no more than 5 % do; with")
        } else {
            "With".to_owned()
        };
        format!(
            "That {delayed} wait is what the seconds of this log make of it: they are coarse, and real times lie apart.\n\
             {few} nodelay = true, none does. Neither rejects more.\n"
        )
    })
}

/// The name of the zone that is advised.
pub(super) fn zone_of(survey: &Surveyed) -> String {
    let zone = survey.facts.zone.clone();
    zone.unwrap_or_else(|| zone_name(&survey.facts.template))
}

/// The lines for the origin's table that put a gate in front of it.
pub(super) fn gate(survey: &Surveyed) -> Option<String> {
    Some(format!("[origins.NAME]\n{}", gate_fields(survey)?))
}

/// The same lines without the title of the table.
pub(super) fn gate_fields(survey: &Surveyed) -> Option<String> {
    let gate = GateAdvice::new(&survey.facts.load, survey.is_for_all())?;
    let is_of_keys = |part: &Part| matches!(part, Part::Variable(_));
    let has_keys = survey.facts.template.parts().iter().any(is_of_keys);
    let zone = has_keys.then(|| toml_string(&zone_of(survey)));
    Some(gate.fields(zone.as_deref()))
}

/// A zone name of letters, digits and `_`, made from the parts of the key.
fn zone_name(template: &KeyTemplate) -> String {
    if let [Part::Variable(Variable::RemoteAddr)] = template.parts() {
        return "per_client".to_owned();
    }
    let mut name = "per".to_owned();
    let text = template.to_string().to_ascii_lowercase();
    for part in text.split(|c: char| !c.is_ascii_alphanumeric()) {
        if !part.is_empty() && name.len() < 40 {
            name.push('_');
            name.push_str(part);
        }
    }
    name.truncate(60);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_named_after_their_keys() {
        let cases = [
            ("$remote_addr", "per_client"),
            ("$http_x_api_key", "per_http_x_api_key"),
            ("$host:${arg_User}x", "per_host_arg_user_x"),
            ("all", "per_all"),
            ("é", "per"),
        ];
        for (template, name) in cases {
            assert_eq!(zone_name(&template.parse().unwrap()), name);
        }
    }
}
