//! What the report says of keys.

use std::fmt::Write as _;

use crate::tools::advise::advice::ZoneAdvice;
use crate::tools::advise::survey::Surveyed;
use crate::tools::advise::windows::headings;
use crate::tools::shown::{percent, share};

pub(super) fn keys(text: &mut String, survey: &Surveyed) {
    let _ = write!(
        text,
        "\n{:<40}{:>10}",
        "keys with the highest peaks", "requests"
    );
    text.push_str(&headings());
    text.push('\n');
    for key in &survey.rest.keys.top {
        let _ = write!(text, "{:<40}{:>10}", key.shown(), key.requests);
        let _ = writeln!(text, "{}", survey.peaks(key.peaks.map(u64::from)));
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
