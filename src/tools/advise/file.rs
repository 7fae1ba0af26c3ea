//! Writes the advice as a complete `gateway.toml`.

use config::toml_string;
use gateway::replay::Form;

use super::advice::Advice;
use super::enough::caution;
use super::fit::WIDTHS;
use super::paste::{gate_fields, limit, title, zone_of};
use super::report::{basis, headline};

/// Placeholder for the origin, which a log does not name.
const ORIGIN: &str = "http://127.0.0.1:9000";

/// Returns a `gateway.toml` with the recommended numbers, from the log `name`.
///
/// `option`: the command-line option with which commands find the file, such as ` -c mine.toml`. If
/// the log is too short for reliable numbers, the limits are commented out.
pub fn file(advice: &Advice, name: &str, option: &str, origin: Option<&str>) -> String {
    let survey = &advice.survey;
    let zone = &advice.zone;
    let of_rate = origin_of_rate(advice, zone.is_without());
    let key = toml_string(&survey.template.to_string());
    let rate = toml_string(&zone.chosen().0.rate.to_string());
    let of_keys = match survey.form {
        Some(Form::Csv) => {
            "# The log does not say what its keys are made of; address is assumed.\n"
        }
        _ => "",
    };
    let caution = caution(survey);
    let gate = gate_fields(survey).unwrap_or_default();
    let (gate, dry_run) = match caution {
        None => (
            gate,
            "# dry_run = true    # limit nobody, only count and log\n",
        ),
        Some(_) => (
            without_fields(&gate),
            "dry_run = true    # limits nobody, only counts and logs: remove it once the numbers are right\n",
        ),
    };
    let caution = comments(&caution.unwrap_or_default());
    let unnamed = match origin {
        Some(_) => "",
        None => "    # the log does not name the backend: write its address here",
    };
    format!(
        "# Numbers from {name}:\n\
         # {} {}.\n\
         # `drip advise {name}` shows who made them; `drip simulate{option} --summary {name}` replays the log\n\
         # against this file.\n\
         {caution}# Saved changes take effect at once; `drip check{option}` shows every value in force.\n\n\
         [server]\n\
         listen = [\"127.0.0.1:8080\"]           # also \"[::]:8080\", or \"unix:drip.sock\"\n\
         admin = \"127.0.0.1:9090\"              # the live page, metrics and API; \"off\" for none\n\
         # trusted_proxies = [\"10.0.0.0/8\"]    # whose X-Forwarded-For tells who the client is\n\n\
         # The gate in front of the origin: what it gets from all clients together.\n\
         [origins.app]\n\
         servers = [{}]{unnamed}\n{gate}\n\
         [zones.{}]\nkey = {key}\n{of_keys}{of_rate}rate = {rate}\n\n\
         [[routes]]\n\
         path = \"/\"\n\
         origin = \"app\"\n\
         # The smallest burst that rejects none of these requests at this rate.\n{}{dry_run}",
        headline(advice),
        basis(survey),
        toml_string(origin.unwrap_or(ORIGIN)),
        title(&zone_of(survey)),
        limit(survey, zone),
    )
}

/// Returns a comment that says how the rate was found.
fn origin_of_rate(advice: &Advice, is_without: bool) -> String {
    let (_, window) = WIDTHS[advice.widths - 1];
    let other = if is_without { "other " } else { "" };
    format!("# The most requests of one {other}key within {window}.\n")
}

/// Turns lines into comments.
fn comments(text: &str) -> String {
    text.lines().flat_map(|line| ["# ", line, "\n"]).collect()
}

/// Returns the same lines, with the fields commented out too.
fn without_fields(lines: &str) -> String {
    let comment = |line: &str| match line.strip_prefix('#') {
        Some(_) => format!("{line}\n"),
        None => format!("# {line}\n"),
    };
    lines.lines().map(comment).collect()
}
