//! The advice as a chart.

use super::advice::{Advice, ZoneAdvice};
use super::hours::Class;
use super::trial::Trial;
use crate::tools::plot::{Chart, Panel, number, seconds, stairs};

/// Units of an axis of time, in seconds.
const UNITS: [(f64, &str); 4] = [
    (86_400.0, "days"),
    (3_600.0, "hours"),
    (60.0, "minutes"),
    (1.0, "seconds"),
];

/// Charts requests a second over time, and the effect of the rates and bursts that were tried.
///
/// Of the keys without a plan; `None` if there is no advice for them.
#[must_use]
pub fn picture(advice: &Advice) -> Option<Chart> {
    let zone = advice.zone.as_ref()?;
    let chosen = zone.chosen.candidate;
    let (survey, rest) = (&advice.survey, &advice.survey.rest);
    let begin = rest.peaks.begin();
    let (_, last) = rest.span();
    let whole = seconds(last.as_nanos().saturating_sub(begin));
    let (unit, unit_name) = UNITS
        .into_iter()
        .find(|(unit, _)| whole >= 3.0 * unit)
        .unwrap_or((1.0, "seconds"));
    let timeline = |label: &str, row: usize| {
        let columns = rest.peaks.columns().iter();
        let counts = columns.map(|column| number(column[row]));
        let points = stairs(counts, seconds(rest.peaks.width()) / unit);
        let mut panel = Panel::new(label)
            .x_label(unit_name)
            .step("", &points)
            .height(130);
        for (from, to, class) in survey.facts.hours.spans() {
            let name = if class == Class::Bad { "bad" } else { "good" };
            for (edge, name) in [(from, name), (to, "")] {
                let at = seconds(edge.as_nanos().saturating_sub(begin)) / unit;
                if edge.as_nanos() >= begin && at <= whole / unit {
                    panel = panel.mark_x(name, at);
                }
            }
        }
        panel
    };
    let rate = chosen.rate;
    let of_busiest = timeline("requests a second, the busiest key", 1)
        .mark_y(format!("rate {rate}"), rate.per_second());
    let chart = Chart::new(format!("rate {}, burst {}", chosen.rate, chosen.burst))
        .subtitle(format!(
            "{} requests of {} keys by {}; the most in a second over time, and the verdicts at other rates and bursts",
            rest.requests(),
            rest.keys.count,
            survey.facts.template
        ))
        .panel(timeline("requests a second, all together", 0))
        .panel(of_busiest)
        .panel(of_bursts(zone, "% rejected", |trial| trial.share_rejected() * 100.0))
        .panel(of_bursts(zone, "% delayed", |trial| trial.share_delayed() * 100.0))
        .panel(of_bursts(zone, "wait in seconds, p99 of requests that wait", |trial| {
            trial.wait(0.99).as_secs_f64()
        }));
    Some(chart)
}

/// A panel of what the trials do at each burst, with a line for each rate.
fn of_bursts(zone: &ZoneAdvice, label: &str, value: fn(&Trial) -> f64) -> Panel {
    let mut panel = Panel::new(label).x_label("burst");
    let rate_of = |trial: &Trial| trial.candidate.rate;
    for trials in zone
        .trials
        .chunk_by(|one, other| rate_of(one) == rate_of(other))
    {
        let at = |trial: &Trial| (f64::from(trial.candidate.burst), value(trial));
        let points: Vec<(f64, f64)> = trials.iter().map(at).collect();
        let rate = trials.first().map(|trial| rate_of(trial).to_string());
        panel = panel.line(rate.unwrap_or_default(), &points);
    }
    let chosen = f64::from(zone.chosen.candidate.burst);
    panel.mark_x("recommended", chosen).height(140)
}
