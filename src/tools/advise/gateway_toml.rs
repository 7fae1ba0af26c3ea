//! Writes the advice as a complete `gateway.toml`.

use config::toml_string;
use gateway::replay::Form;

use super::advice::Advice;
use super::caution::caution;
use super::gate::gate_fields;
use super::paste::{limits_field, table_name, zone_name};
use super::report::{basis, headline};

/// Placeholder for the origin. A log does not name it.
const ORIGIN: &str = "http://127.0.0.1:9000";

/// Returns a `gateway.toml` with the recommended rate and burst, from the log `name`.
///
/// `option`: the command-line option with which commands find the file, such as ` -c mine.toml`.
/// `origin`: URL of the origin's server; `None`: the file gets a placeholder, with a comment. If
/// the log is too short, the gate's fields are commented out, and the route's limit is a dry run.
pub fn gateway_toml(advice: &Advice, name: &str, option: &str, origin: Option<&str>) -> String {
    let survey = &advice.survey;
    let rate_comment = rate_comment(advice);
    let key = toml_string(&survey.template.to_string());
    let rate = toml_string(&advice.choice().recommended.rate.to_string());
    // A line of CSV has a finished key, and not the fields of the request that it was made of. So
    // the template of the key is unknown.
    let key_comment = match survey.form {
        Some(Form::Csv) => {
            "# The log does not contain the parts of its keys: the client address is assumed.\n"
        }
        _ => "",
    };
    let caution = caution(survey);
    let gate = gate_fields(survey).unwrap_or_default();
    let (gate, dry_run) = match caution {
        None => (
            gate,
            "# dry_run = true    # reject and delay nothing, only count and log\n",
        ),
        Some(_) => (
            comment_out(&gate),
            "dry_run = true    # rejects and delays nothing, only counts and logs: remove it once the numbers are right\n",
        ),
    };
    let caution = as_comments(&caution.unwrap_or_default());
    let origin_comment = match origin {
        Some(_) => "",
        None => "    # the log does not contain the origin's address: write it here",
    };
    let (headline, basis) = (headline(advice), basis(survey));
    let server = toml_string(origin.unwrap_or(ORIGIN));
    let (zone, limit) = (table_name(&zone_name(survey)), limits_field(advice));
    format!(
        "# Numbers from {name}:\n\
         # {headline} {basis}.\n\
         # `drip advise {name}` shows the keys; `drip simulate{option} --summary {name}` replays the log\n\
         # against this file.\n\
         {caution}# Saved changes take effect at once; `drip check --all{option}` shows every value in force.\n\n\
         [server]\n\
         listen = [\"127.0.0.1:8080\"]           # also \"[::]:8080\", or \"unix:drip.sock\"\n\
         admin = \"127.0.0.1:9090\"              # the live page, metrics and API; \"off\" for none\n\
         # trusted_proxies = [\"10.0.0.0/8\"]    # proxies whose X-Forwarded-For is trusted\n\n\
         # The gate of the origin limits the requests of all clients together.\n\
         [origins.app]\n\
         servers = [{server}]{origin_comment}\n{gate}\n\
         [zones.{zone}]\nkey = {key}\n{key_comment}{rate_comment}rate = {rate}\n\n\
         [[routes]]\n\
         path = \"/\"\n\
         origin = \"app\"\n\
         # The smallest burst that rejects none of these requests at this rate.\n{limit}{dry_run}"
    )
}

/// Returns a comment that says how the rate was computed.
fn rate_comment(advice: &Advice) -> String {
    let window = advice.widest_window();
    let other = if advice.ignores_busiest() {
        "other "
    } else {
        ""
    };
    format!("# The most requests of one {other}key within {window}.\n")
}

/// Turns all lines into comments.
fn as_comments(text: &str) -> String {
    text.lines().flat_map(|line| ["# ", line, "\n"]).collect()
}

/// Turns lines into comments. Lines that are comments stay as they are.
fn comment_out(lines: &str) -> String {
    let comment = |line: &str| {
        let mark = if line.starts_with('#') { "" } else { "# " };
        format!("{mark}{line}\n")
    };
    lines.lines().map(comment).collect()
}
