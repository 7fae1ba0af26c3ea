//! What the report says of keys.

use std::fmt::Write as _;

use super::is_known;
use crate::tools::advise::advice::ZoneAdvice;
use crate::tools::advise::survey::Surveyed;
use crate::tools::advise::windows::WIDTHS;
use crate::tools::shown::{percent, share};

pub(super) fn keys(text: &mut String, survey: &Surveyed) {
    let _ = write!(
        text,
        "\n{:<40}{:>10}",
        "keys with the highest peaks", "requests"
    );
    for (_, width) in WIDTHS {
        let _ = write!(text, "{width:>8}");
    }
    text.push('\n');
    for key in &survey.rest.keys.top {
        let _ = write!(text, "{:<40}{:>10}", key.shown(), key.requests);
        for (width, peak) in key.peaks.iter().enumerate() {
            let _ = if is_known(survey, width) {
                write!(text, "{peak:>8}")
            } else {
                write!(text, "{:>8}", "?")
            };
        }
        text.push('\n');
    }
}

/// Who causes the load, and whom the recommendation rejects most.
pub(super) fn heaviest(text: &mut String, survey: &Surveyed, advice: &ZoneAdvice) {
    let all = survey.rest.requests();
    let _ = writeln!(
        text,
        "\n{:<40}{:>10}{:>10}{:>24}",
        "keys with the most requests", "requests", "of all", "rejected as recommended"
    );
    let keys = survey.rest.keys.most.iter();
    for (key, rejected) in keys.zip(&advice.rejected_of_heaviest) {
        let of_all = percent(share(key.requests, all));
        let rejected = rejected.map_or("?".to_owned(), |count| count.to_string());
        let _ = writeln!(
            text,
            "{:<40}{:>10}{of_all:>10}{rejected:>24}",
            key.shown(),
            key.requests
        );
    }
}
