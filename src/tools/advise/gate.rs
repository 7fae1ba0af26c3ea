//! Formats the advice for the gate in front of the origin.

use config::{Part, toml_string};
use limit::to_float;

use super::fit::{FASTEST, per};
use super::paste::zone_of;
use super::survey::Survey;

/// Share of the seconds in which the gate should delay no request.
const SHARE: f64 = 0.999;

/// Minimum number of permits advised.
///
/// With one permit, each request waits for the previous one.
const MIN_PERMITS: u64 = 2;

const MILLION: u64 = 1_000_000;

/// Returns fields for the table of the origin; `None` if the log has no requests to judge by.
///
/// The rate and the number of permits are those of the busiest seconds, without the busiest few.
pub(super) fn gate_fields(survey: &Survey) -> Option<String> {
    let load = &survey.load;
    let per_second = load.per_second().quantile(SHARE);
    if per_second == 0 {
        return None;
    }
    let rate = per(
        per_second.saturating_mul(5).div_ceil(4).min(FASTEST),
        1,
        's',
    );
    let mut text = format!(
        "# In 99.9 % of the seconds at most {per_second} requests arrived. The rate is a quarter more.\n\
         rate = \"{rate}\"\n"
    );
    if load.is_timed() {
        let millionths = load.in_flight.quantile(SHARE);
        let permits = millionths.saturating_mul(2).div_ceil(MILLION);
        text += &format!(
            "# In 99.9 % of the seconds at most {:.1} were at the origin on average. This is twice that.\n\
             max_in_flight = {}\n",
            to_float(millionths) / to_float(MILLION),
            permits.max(MIN_PERMITS)
        );
    }
    let is_variable = |part: &Part| matches!(part, Part::Variable(_));
    if survey.template.parts().iter().any(is_variable) {
        text += &format!("share = {}\n", toml_string(&zone_of(survey)));
    }
    Some(text)
}
