use std::time::Duration;

use super::{Fields, Node, values};
use crate::config::{Backoff, BackoffMode, Statuses, Trouble};
use crate::limit::{BackoffLimits, Percent};

/// Reads `[origins.NAME.backoff]`.
pub(super) fn read(mut fields: Fields) -> Backoff {
    let on = values::list("[\"503\", \"timeout\"]", trouble);
    let ten_percent = Percent::from_millionths(100_000);
    let default = vec![
        Trouble::Status(Statuses::One(503)),
        Trouble::Timeout,
        Trouble::Connect,
    ];
    let backoff = Backoff {
        mode: fields.or(
            "mode",
            BackoffMode::default(),
            values::choice(&BackoffMode::NAMED),
        ),
        on: fields.or("on", default, |node| {
            values::filled("[\"503\", \"timeout\"]", node)?;
            on(node)
        }),
        limits: BackoffLimits {
            slow: fields.get("slow").and_then(values::timeout_or_none),
            trip: fields.or("trip", ten_percent, percent),
            floor: fields.or("floor", ten_percent, percent),
            max_pause: fields.or("max_pause", Duration::from_secs(30), values::timeout),
        },
    };
    fields.finish();
    backoff
}

fn percent(node: Node) -> Option<Percent> {
    if values::is_spaced(node, |text| text.parse::<Percent>().is_ok()) {
        return None;
    }
    values::parsed(node, "a percentage such as \"10%\"", str::parse)
}

fn trouble(node: Node) -> Option<Trouble> {
    values::parsed(
        node,
        "a status such as \"503\", \"5xx\", \"timeout\" or \"connect\"",
        str::parse,
    )
}
