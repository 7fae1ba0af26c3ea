//! Rules that hold for all headlines.

use std::sync::LazyLock;
use std::time::Duration;

use serde_json::Value;

use super::rule::{has, whole};
use crate::support::drip;

/// Patterns that are in no headline.
///
/// These are durations of nothing, numbers with more than two decimals that are no times, and
/// reassurance.
const NEVER: [&str; 3] = [
    r"(^|[^.\d])0 ms",
    r"(^|[^.\d])\d+\.\d{3,}($|[^.\dZ]|\.($|[^\d]))",
    "all is well",
];

/// Time without a completed request after which an origin counts as stuck.
///
/// A sample is up to a second old, so this is longer than the three seconds of the headline.
const STUCK: Duration = Duration::from_millis(4500);

/// Returns what is wrong in a headline in any incident.
///
/// `stuck`: time for which origins have had requests and completed none.
pub fn forbidden(headline: &Value, stuck: Duration) -> Vec<String> {
    let remedy = headline["remedy"].as_str().unwrap_or_default();
    let title = headline["title"].as_str().unwrap_or_default();
    let whole = whole(headline);
    let mut found: Vec<_> = NEVER
        .iter()
        .filter(|pattern| has(&whole, pattern))
        .map(|pattern| format!("it says {pattern:?}"))
        .collect();
    if has(title, r"\bfine\b") {
        found.push("the title says \"fine\"".to_owned());
    }
    if stuck >= STUCK {
        if has(title, "no requests are waiting") {
            found.push(format!("nothing was answered for {stuck:.1?}: {title:?}"));
        }
        let more = ["max_in_flight", "raise .*rate"];
        let more = more.iter().filter(|it| has(remedy, it));
        found.extend(
            more.map(|it| {
                format!("nothing was answered for {stuck:.1?}, and the remedy says {it:?}")
            }),
        );
    }
    let unknown = settings_of(remedy).filter(|name| !is_setting(name));
    found.extend(unknown.map(|name| format!("there is no setting `{name}`")));
    found
}

/// Returns the words in backticks that look like settings.
fn settings_of(remedy: &str) -> impl Iterator<Item = &str> {
    let quoted = remedy.split('`').skip(1).step_by(2);
    quoted.filter(|word| has(word, "^[a-z][a-z0-9_.]*$") && !word.contains(char::is_uppercase))
}

/// Returns whether the schema of the file has such a field or table.
///
/// Parameters of the kernel are not in the file.
fn is_setting(name: &str) -> bool {
    static SCHEMA: LazyLock<String> = LazyLock::new(|| {
        let output = drip().arg("schema").output().expect("it runs");
        String::from_utf8(output.stdout).expect("text")
    });
    let last = name.rsplit('.').next().unwrap_or_default();
    name.starts_with("net.") || SCHEMA.contains(&format!("\"{last}\": {{"))
}
