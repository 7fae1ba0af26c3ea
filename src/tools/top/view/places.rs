//! The places of an origin that gateways share, as one of them has them.

use crate::status::views::{Places, Plain};

/// What this gateway uses and holds, and what there is.
pub(in crate::tools::top) fn of_gateway(it: &Places) -> String {
    let gateways = match it.gateways {
        1 => "1 gateway".to_owned(),
        many => format!("{many} gateways"),
    };
    format!(
        "{} used of {} held, {} free of {} for {gateways}",
        it.in_use, it.held, it.free, it.of
    )
}

/// How many nobody gets yet, as gateways that vanished may use them; `None`: none.
pub(in crate::tools::top) fn withheld(it: &Places) -> Option<String> {
    (it.withheld > 0).then(|| format!("{} withheld", it.withheld))
}

/// Why the gateway borrows none; `None` if it does.
pub(in crate::tools::top) fn why_alone(it: &Places) -> Option<String> {
    it.alone.then(|| {
        let why = it
            .reason
            .as_ref()
            .map_or("Redis does not answer", Plain::as_str);
        format!("the lease has ended: {why}")
    })
}
