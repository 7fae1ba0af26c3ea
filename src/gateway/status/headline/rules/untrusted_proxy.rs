use super::super::finding::{Cause, Finding, Severity};
use super::super::recent::Recent;
use super::super::words::{part, waiting};
use super::zones::came;
use crate::status::views::ZoneSample;

/// A peer that sends requests of several clients, which a limit counts as one.
pub(super) fn untrusted_proxy(recent: &Recent<'_>, zone: &ZoneSample) -> Option<Finding> {
    let name = &zone.name;
    let rejected = recent.total(zone, |it| it.rejected);
    // What was rejected stays its doing when the load has ended, or once it is trusted.
    let peer = match rejected {
        0 => zone.untrusted_proxy.as_ref()?,
        _ => recent.latest_or_before(zone, |it| it.untrusted_proxy.as_ref())?,
    };
    let came = came(recent, zone);
    let limited = if rejected > 0 {
        let rejected = recent.share_of(rejected, came, "request");
        format!("{rejected} were rejected.")
    } else {
        format!("{}.", waiting(zone.depth))
    };
    let severity = Severity::bad_if(rejected * 2 >= came.max(1));
    Some(Finding {
        weight: part(rejected, 1),
        title: format!("{name} counts all clients behind {peer} as one"),
        evidence: format!(
            "{peer} names different clients in X-Forwarded-For, and is not in `trusted_proxies`. {limited}"
        ),
        remedy: format!(
            "If {peer} is a proxy of your own, add it to `server.trusted_proxies`; then each of its clients has a limit of its own. If it is a client, leave it out: it invents them."
        ),
        ..Finding::about(name, Cause::UntrustedProxy, severity)
    })
}
