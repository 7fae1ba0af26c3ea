//! Warnings about `[routes.collapse]`, by which equal requests share one answer of the origin.

use std::collections::HashSet;

use crate::node::Node;
use crate::{Collapse, Route, Settings, Variable, show_size};

/// Warns of answers that clients of different buckets share, and of answers too large to share.
///
/// `node`: the route in the file.
pub(super) fn check(settings: &Settings, route: &Route, node: Node) {
    let (Some(collapse), Some(node)) = (&route.collapse, node.field("collapse")) else {
        return;
    };
    let zones = route.limits.iter().map(|limit| &settings.zones[limit.zone]);
    let variables: HashSet<&Variable> = zones.flat_map(|zone| zone.key.variables()).collect();
    for variable in variables {
        let Some((field, name)) = missing_name(collapse, route, variable) else {
            continue;
        };
        node.field(field).unwrap_or(node).warn(&format!(
            "answers are shared between clients that differ in ${variable}, by which a limit of this route separates them; if the responses of the origin depend on it, add \"{name}\" to {field}"
        ));
    }
    let memory = settings.server.shared_answers;
    if collapse.max_size > memory {
        let (size, memory) = (show_size(collapse.max_size.get()), show_size(memory.get()));
        node.field("max_size").unwrap_or(node).warn(&format!(
            "an answer of {size} does not fit into shared_answers of [server], which is {memory}; raise that, or lower max_size"
        ));
    }
}

/// Returns the field of `collapse` that should list a variable, and the name to add to this field.
///
/// `None`: clients that differ in the variable share nothing, or the origin does not see it.
fn missing_name<'v>(
    collapse: &Collapse,
    route: &Route,
    variable: &'v Variable,
) -> Option<(&'static str, &'v str)> {
    if collapse.key.variables().any(|known| known == variable) {
        return None;
    }
    match variable {
        Variable::Header(name) => {
            let is_edited = route.request_fields.has(name.as_bytes());
            let is_safe = is_edited || collapse.vary.contains(name) || needs_no_vary(name);
            (!is_safe).then_some(("vary", name))
        }
        Variable::Cookie(name) => {
            // Without the list of cookies, no request with any cookie shares, so nothing is
            // missing.
            let cookies = collapse.cookies.as_ref()?;
            let is_removed = route.request_fields.has(b"cookie");
            (!cookies.contains(name) && !is_removed).then_some(("cookies", name))
        }
        _ => None,
    }
}

/// Returns whether `vary` does not need this header field.
///
/// Requests with a secret in the field share nothing. Other fields are irrelevant: the responses of
/// an origin usually do not depend on them. `host` is in the key as `$host`, and drip writes
/// `x-forwarded-…` itself.
fn needs_no_vary(name: &str) -> bool {
    let is_secret = matches!(name, "authorization" | "cookie");
    let is_irrelevant = matches!(name, "forwarded" | "host" | "user-agent" | "x-real-ip");
    is_secret || is_irrelevant || name.starts_with("x-forwarded-")
}
