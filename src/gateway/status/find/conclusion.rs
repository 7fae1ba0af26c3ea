//! Sentences for the end of an experiment of `drip find`, and for the cause of the end.
//!
//! An experiment raises the *level* of an origin, its rate or its number of permits, step by step.
//! A level *holds* if the *objective*, such as p95<400ms, is kept at it.

use limit::find::{AbortReason, HeldBack, Level, Objective, Outcome};

use super::line::level;

/// Sentence for the end of the search.
pub fn conclusion(outcome: &Outcome, objective: &Objective) -> String {
    let ending = ending(outcome, objective);
    match outcome {
        Outcome::Aborted(..) => format!("ended: {ending}"),
        _ => ending,
    }
}

/// Sentence for the end of the search, as text after `ended: `.
pub fn ending(outcome: &Outcome, objective: &Objective) -> String {
    match outcome {
        Outcome::Found(found) if found.is_upper_bound => format!(
            "{} keeps {objective}: the upper bound, so the origin may take more; raise it to find out",
            level(found.level)
        ),
        Outcome::Found(found) => {
            let [kept, low, high] = [found.level, found.low, found.high].map(level);
            format!("{kept} keeps {objective}; the end of the origin is between {low} and {high}")
        }
        Outcome::AtLeast(it) => format!("at least {}; nobody asked for more", level(*it)),
        Outcome::HeldBack(it) => format!("at least {}; {}", level(it.level), held_back(it)),
        Outcome::Unknown(tried) => {
            let tried = level(*tried);
            format!("nothing is known: nobody asked for enough at {tried}")
        }
        Outcome::Aborted(reason, held) => {
            format!("{}; {}", abort_reason(*reason), highest_held(*held))
        }
    }
}

/// Names the highest level that was shown to hold, for the end of a sentence.
fn highest_held(held: Option<Level>) -> String {
    held.map_or("no level was shown to hold".to_owned(), |held| {
        format!("{} held before", level(held))
    })
}

/// Cause that held requests back below the searched level, and the remedy.
pub fn held_back(held_back: &HeldBack) -> String {
    let (other, searched) = match held_back.level {
        Level::Rate(_) => ("max_in_flight", "the pace"),
        Level::Permits(_) => ("rate", "max_in_flight"),
    };
    let value = held_back.by.map_or(String::new(), |by| format!(" = {by}"));
    format!("{other}{value} held requests back before {searched} did: raise it")
}

/// Reason why an experiment ended early, and the remedy, as text after `ended: `.
pub fn abort_reason(reason: AbortReason) -> &'static str {
    match reason {
        AbortReason::FileChanged => "the configuration file changed; start again",
        AbortReason::ServersChanged => {
            "a server of the origin came, went or changed its health; start again when they \
             are steady"
        }
        AbortReason::BackedOff => {
            "back-off lowered what the origin gets; start again when it has recovered, or \
             with a stricter objective"
        }
        AbortReason::BrokenAtFirst => {
            "the objective does not hold at the lowest level; see whether the origin is well, or \
             start lower, or with another objective"
        }
        AbortReason::NotRecovered => {
            "the origin did not recover at the lowest level within a minute; look at the origin"
        }
        AbortReason::OwnerLost => "the terminal or the connection that started it is gone",
        AbortReason::Stopped => "stopped",
        AbortReason::Unsteady => {
            "what was found broke again and again; the origin changes while it is measured"
        }
        AbortReason::Undone => "its override was undone or has expired",
        AbortReason::Overridden => "somebody else overrides this origin",
    }
}
