//! The advice as a whole `gateway.toml`.

use super::advice::Advice;
use super::hours::Class;
use super::pace::LONGEST_WAIT;
use super::paste::{gate_fields, limit, zone_of};
use super::plans::title;
use super::report::basis;
use crate::config::toml_string;
use crate::replay::Form;

/// Replaces the origin, which a log does not name.
const ORIGIN: &str = "http://127.0.0.1:9000";

/// A `gateway.toml` with the recommended numbers, from the log `name`.
///
/// `None` if there is no advice for keys without a plan.
#[must_use]
pub fn file(advice: &Advice, name: &str, origin: Option<&str>) -> Option<String> {
    let survey = &advice.survey;
    let candidate = advice.chosen()?.candidate;
    let (key, rate) = (survey.template.to_string(), candidate.rate.to_string());
    let of_keys = match survey.form {
        Some(Form::Csv) => {
            "# The log does not say what its keys are made of; address is assumed.\n"
        }
        _ => "",
    };
    let outliers = advice.outliers_told();
    let without = if outliers.is_empty() {
        ""
    } else {
        ", without those that stand out"
    };
    let of_rate = match survey.rest.peak(Class::Good) {
        1 => format!(
            "# No key came twice in a second of the log: this is no less than the most in a minute, and no\n\
             # request would have waited longer than {LONGEST_WAIT} s.\n"
        ),
        _ => format!("# The most that one key came in a second of the log{without}.\n"),
    };
    let outliers: String = outliers
        .lines()
        .flat_map(|line| ["# ", line, "\n"])
        .collect();
    let gate = gate_fields(survey).unwrap_or_default();
    let unnamed = match origin {
        Some(_) => "",
        None => "    # the log does not name the backend: write its address here",
    };
    Some(format!(
        "# Numbers from {name}:\n\
         # {}.\n\
         # `drip advise {name}` shows what these numbers and their neighbours would have delayed and\n\
         # rejected; `drip simulate --summary {name}` replays the log against this file.\n\
         {outliers}# Saved changes take effect at once; `drip check` shows every value in force.\n\n\
         [server]\n\
         listen = [\"127.0.0.1:8080\"]           # also \"[::]:8080\", or \"unix:drip.sock\"\n\
         # trusted_proxies = [\"10.0.0.0/8\"]    # whose X-Forwarded-For tells who the client is\n\n\
         # The gate in front of the origin: what it gets from all clients together.\n\
         [origins.app]\n\
         servers = [{}]{unnamed}\n{gate}\n\
         [zones.{}]\nkey = {}\n{of_keys}{of_rate}rate = {}\n\n\
         [[routes]]\n\
         path = \"/\"\n\
         origin = \"app\"\n\
         # The smallest burst that rejects none of these requests at this rate.\n{}\
         # dry_run = true    # limit nobody, only count and log\n",
        basis(survey),
        toml_string(origin.unwrap_or(ORIGIN)),
        title(&zone_of(survey)),
        toml_string(&key),
        toml_string(&rate),
        limit(survey, candidate),
    ))
}
