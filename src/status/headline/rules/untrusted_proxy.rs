use super::super::finding::{Cause, Finding, Severity};
use super::super::recent::Recent;
use super::super::words::{count, part, waiting, whole};
use super::zones::came;
use crate::status::views::ZoneSample;

/// A peer that sends requests of several clients, which a limit counts as one.
pub(super) fn untrusted_proxy(recent: &Recent<'_>, zone: &ZoneSample) -> Option<Finding> {
    let name = &zone.name;
    let rejected = recent.of_zone(name, |it| it.rejected);
    // What was rejected stays its doing when the load has ended, or once it is trusted.
    let peer = match rejected {
        0 => zone.untrusted_proxy.as_ref()?,
        _ => recent.latest_of_zone(name, |it| it.untrusted_proxy.as_ref())?,
    };
    let (came, span) = (came(recent, zone), recent.seconds());
    let limited = if rejected > 0 {
        format!(
            "{} of {} in the last {span:.0} s were rejected.",
            whole(rejected),
            count(came, "request")
        )
    } else {
        format!("{}.", waiting(zone.depth))
    };
    Some(Finding {
        cause: Cause::UntrustedProxy,
        severity: Severity::bad_if(rejected * 2 >= came.max(1)),
        weight: part(rejected, 1),
        about: Some(name.clone()),
        title: format!("{name} counts all clients behind {peer} as one"),
        evidence: format!(
            "{peer} names different clients in X-Forwarded-For, and is not in `trusted_proxies`. {limited}"
        ),
        remedy: format!(
            "If {peer} is a proxy of your own, add it to `server.trusted_proxies`; then each of its clients has a limit of its own. If it is a client, leave it out: it invents them."
        ),
    })
}
