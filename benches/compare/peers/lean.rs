//! Arguments of lean, a minimal proxy that shows the lowest possible cost.

use super::{Plan, Written};

/// Returns the arguments `lean PORT ORIGIN THREADS LIMIT`. lean reads no file.
///
/// For each request it asks an actor, as drip does, or it makes all requests wait.
pub fn plan(plan: &Plan) -> Written {
    let limit = if plan.setup.all_wait {
        "wait"
    } else {
        "actors"
    };
    let (port, origin) = (plan.address.port().to_string(), plan.origin.to_string());
    let threads = plan.setup.workers.to_string();
    Written::new(None, [&port, &origin, &threads, limit])
}
