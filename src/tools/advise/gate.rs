//! Formats the advice for the gate: the limit in front of the origin, for all clients together.

use config::{Part, toml_string};
use limit::to_float;

use super::fit::{MAX_RATE, rounded_rate};
use super::paste::zone_name;
use super::survey::Survey;

/// Part of the seconds in which the gate should delay no request.
const QUANTILE: f64 = 0.999;

/// Minimum number of permits advised.
///
/// With one permit, each request waits for the previous one.
const MIN_PERMITS: u64 = 2;

const MILLION: u64 = 1_000_000;

/// Returns fields for the table of the origin; `None` if the log has no requests at the origin.
///
/// The rate and the number of permits leave some room above the load of nearly all seconds. A
/// permit lets one request be at the origin.
pub(super) fn gate_fields(survey: &Survey) -> Option<String> {
    let load = &survey.load;
    let per_second = load.per_second().quantile(QUANTILE);
    if per_second == 0 {
        return None;
    }
    let quarter_more = per_second.saturating_mul(5).div_ceil(4);
    let rate = rounded_rate(quarter_more.min(MAX_RATE), 1, 's');
    let mut text = format!(
        "# In 99.9 % of the seconds at most {per_second} requests arrived. The rate is a quarter more.\n\
         rate = \"{rate}\"\n"
    );
    if load.is_timed() {
        // The load is in millionths of a request.
        let millionths = load.in_flight.quantile(QUANTILE);
        let twice = millionths.saturating_mul(2).div_ceil(MILLION);
        text += &format!(
            "# In 99.9 % of the seconds at most {:.1} were at the origin on average. This is twice that.\n\
             max_in_flight = {}\n",
            to_float(millionths) / to_float(MILLION),
            twice.max(MIN_PERMITS)
        );
    }
    // A key without variables is the same for all clients, so they have nothing to share by.
    let is_variable = |part: &Part| matches!(part, Part::Variable(_));
    if survey.template.parts().iter().any(is_variable) {
        text += &format!("share = {}\n", toml_string(&zone_name(survey)));
    }
    Some(text)
}
