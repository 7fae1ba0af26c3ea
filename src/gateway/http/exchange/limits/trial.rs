//! Limits in dry run beside others that are enforced.

use config::Route;

use super::pending::PendingLimit;
use super::turns::Turns;
use super::verdict::Verdicts;
use crate::http::gateway::Gateway;

/// Sets the limits in dry run apart from the others, if there are both: an override may be for one
/// of several zones, and must not let the request past the others.
pub(super) fn set_apart(pending: Vec<PendingLimit>) -> (Vec<PendingLimit>, Vec<PendingLimit>) {
    let (dry, enforced): (Vec<_>, Vec<_>) = pending.into_iter().partition(|it| it.join.dry_run);
    if enforced.is_empty() {
        (dry, enforced)
    } else {
        (enforced, dry)
    }
}

/// Joins limits in dry run beside others. They answer at once, and reject nothing.
pub(super) async fn try_out<'r>(
    gateway: &'r Gateway,
    route: &Route,
    tried: Vec<PendingLimit>,
) -> (Verdicts, Turns<'r>) {
    let (mut verdicts, mut turns) = (Verdicts::new(), Turns::default());
    for asked in tried {
        match asked.join(gateway).await {
            Ok(turn) => {
                verdicts.push(asked.granted(&turn));
                turns.push(turn);
            }
            Err(rejection) => {
                let verdict = asked.rejected(&rejection);
                verdict.tell_rejection(gateway, route, &rejection);
                verdicts.push(verdict);
            }
        }
    }
    (verdicts, turns)
}
