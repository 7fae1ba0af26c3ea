//! What the report says of requests that could share an answer.

use std::fmt::Write as _;

use crate::tools::collapse::{Collapsed, KEEPS, notes, table};
use crate::tools::shown::percent;

/// Below this share nothing is said.
const MIN_SAVED: f64 = 0.05;
/// The `keep` that is advised saves at least this part of what the longest one saves.
const ENOUGH: f64 = 0.5;
/// Maximum number of paths that are named.
const MAX_PATHS: usize = 3;

/// What collapsing would save, and the table to paste; `None` if that is little or not known.
pub(super) fn collapse(collapsed: &Collapsed) -> Option<String> {
    let all = &collapsed.all;
    let most = all.share_saved(KEEPS.len() - 1);
    if !collapsed.has_paths() || most < MIN_SAVED {
        return None;
    }
    let is_enough = |nth: &usize| all.share_saved(*nth) >= most * ENOUGH;
    let nth = (0..KEEPS.len()).find(is_enough)?;
    let (_, keep) = KEEPS[nth];
    let mut text = format!(
        "\nCollapsing, by which requests for the same thing share one answer, would save up to {}\n\
         of {} requests. An answer that is complete serves newcomers for keep:\n\n{}\n{}",
        percent(most),
        all.requests,
        table(collapsed, MAX_PATHS),
        notes(collapsed),
    );
    let _ = write!(
        text,
        "If pages are the same for everybody, in a table below the fields of their route:\n\n\
         [routes.collapse]\n\
         # Of all requests in the log, the departures of others would have answered {}.\n\
         keep = \"{keep}\"\n",
        percent(all.share_saved(nth)),
    );
    Some(text)
}
