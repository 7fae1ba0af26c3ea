use super::{Plan, Written};

/// Reads no file: `lean PORT ORIGIN THREADS LIMIT`.
///
/// It asks an actor for each request, as drip does, or makes all requests wait.
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
