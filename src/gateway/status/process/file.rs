//! Rules of the headline for errors and probable mistakes in the configuration file.
//!
//! A rule reads the samples of the last seconds, and returns its finding: cause, evidence and
//! remedy, in words for the operator. The headline is the most urgent finding.

use crate::status::headline::finding::{Cause, Finding, Severity, Suspicion};
use crate::status::headline::recent::Recent;
use crate::status::headline::words::{count, is, listed, part, whole, whole_seconds};
use crate::status::plain::Plain;
use crate::status::sample::{LostKeysSample, Sample};

/// Remedy for an error: in the line itself, or in a file that the line names.
const CORRECT: &str =
    "Correct the file, or the one that the line names, and save it; drip check names all errors.";

/// Rule: the file has an error.
pub(crate) fn file_error(_: &Recent<'_>, now: &Sample) -> Option<Finding> {
    let error = now.error.as_ref()?;
    let (location, remedy) = match (&error.file, error.line) {
        (None, None) => (
            "The file ".to_owned(),
            "Write the file again, or let the gateway read it.",
        ),
        (Some(_), _) => (format!("In {}: ", error.location()), CORRECT),
        (None, Some(line)) => (format!("Line {line}: "), CORRECT),
    };
    Some(Finding {
        title: "The file has an error; the previous settings stay in force".to_owned(),
        evidence: format!("{location}{}.", error.message),
        remedy: remedy.to_owned(),
        suspicion: Suspicion::Unnamed,
        ..Finding::new(Cause::FileError, Severity::Warn)
    })
}

/// Finds plans that lost most of their keys, and settings that need a restart.
pub(crate) fn file_doubtful(_: &Recent<'_>, now: &Sample) -> Vec<Finding> {
    let lost = now.lost_keys.iter().map(describe_lost_keys);
    lost.chain(find_restart(&now.needs_restart)).collect()
}

/// Reports a plan that lost most of its keys. A plan is a list of keys with limits of their own.
fn describe_lost_keys(keys: &LostKeysSample) -> Finding {
    let LostKeysSample {
        zone,
        plan,
        file,
        lost,
        had,
        ago,
    } = keys;
    let file = file.as_ref().map_or("the file", Plain::as_str);
    let ago = whole_seconds(*ago);
    Finding {
        weight: part(*lost, 1),
        title: format!(
            "Plan {plan} of {zone} has lost {} of {}",
            whole(*lost),
            count(*had, "key")
        ),
        evidence: format!("A change of {file} came into force {ago} ago."),
        remedy: format!(
            "If that was not meant, restore {file}: keys without a plan have the limit of {zone}."
        ),
        suspicion: Suspicion::Unnamed,
        ..Finding::about(zone, Cause::FileDoubtful, Severity::Warn)
    }
}

/// Reports settings that need a restart.
///
/// The finding has the lowest weight: nothing is wrong until the next restart.
fn find_restart(settings: &[Plain]) -> Option<Finding> {
    let names: Vec<_> = settings.iter().map(Plain::to_string).collect();
    let title = match names.as_slice() {
        [] => return None,
        [only] => format!("{only} waits for a restart"),
        names => format!("{} settings wait for a restart", names.len()),
    };
    let are = is(names.len() as u64);
    Some(Finding {
        title,
        evidence: format!(
            "{} {are} not as in the file: the values of the start are in force.",
            listed(&names)
        ),
        remedy: "Restart the gateway, or take the change back.".to_owned(),
        suspicion: Suspicion::Unnamed,
        ..Finding::new(Cause::FileDoubtful, Severity::Warn)
    })
}
