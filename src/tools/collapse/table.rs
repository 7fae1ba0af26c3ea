use std::fmt::Write;

use limit::show_duration;

use super::request::ASSUMED;
use super::{Collapsed, KEEPS, Tally};
use crate::shown::{self, percent};

/// What is saved of all requests, of the first `most` paths, and of the others.
pub(crate) fn table(collapsed: &Collapsed, most: usize) -> String {
    let mut text = format!("{:<50}", "");
    // Writing to a String cannot fail, here and below.
    for (_, keep) in KEEPS {
        let _ = write!(text, "{:>20}", format!("keep = \"{keep}\""));
    }
    let _ = write!(text, "\n{:<40}{:>10}", "path", "requests");
    for _ in KEEPS {
        let _ = write!(text, "{:>11}{:>9}", "sent", "saved");
    }
    text.push('\n');
    line(&mut text, "all", &collapsed.all);
    let (shown, others) = collapsed.paths.split_at(most.min(collapsed.paths.len()));
    for it in shown {
        line(&mut text, &shown::key(&it.path), &it.tally);
    }
    let rest = others
        .iter()
        .fold(collapsed.beyond, |sum, it| sum.and(&it.tally));
    if rest.requests > 0 {
        line(&mut text, "all other paths", &rest);
    }
    text
}

fn line(text: &mut String, name: &str, tally: &Tally) {
    let _ = write!(text, "{name:<40}{:>10}", tally.requests);
    for keep in 0..KEEPS.len() {
        let saved = percent(tally.share_saved(keep));
        let _ = write!(text, "{:>11}{saved:>9}", tally.sent[keep]);
    }
    text.push('\n');
}

/// Why the numbers may be wrong; lines of text.
pub(crate) fn notes(collapsed: &Collapsed) -> String {
    let mut text = String::new();
    if !collapsed.is_fine {
        text.push_str(
            "The log has whole seconds: requests within one second count as if they came at once,\n\
             so less may be saved, above all with a short keep.\n",
        );
    }
    let notes = [
        (
            collapsed.untimed,
            format!(
                "requests have no time at the origin in the log; {} are assumed",
                show_duration(ASSUMED)
            ),
        ),
        (
            collapsed.gave_up,
            "requests would wait for another one for longer than follow_timeout or max_wait, and go\n\
             to the origin by themselves: a longer follow_timeout saves them"
                .to_owned(),
        ),
        (
            collapsed.forgotten,
            "times a target was forgotten to make room for another, as there are too many to\n\
             remember at once: more would be saved"
                .to_owned(),
        ),
        (
            collapsed.beyond.requests,
            "requests have paths beyond those that are counted one by one".to_owned(),
        ),
    ];
    for (count, what) in notes {
        if count > 0 {
            let _ = writeln!(text, "{count} {what}");
        }
    }
    text.push_str(
        "This is an upper bound: the log shows neither which answers may not be shared (private,\n\
         no-store, Set-Cookie, Vary) nor which requests have cookies or an Authorization.\n",
    );
    text
}
