//! `strip_prefix` and `add_prefix` of a route.

use super::kinds;
use super::prelude::*;
use crate::{PathPattern, PathRewrite, target};

pub(super) const STRIP_FORM: Form = Form::Like("/[^?#]*");
pub(super) const ADD_FORM: Form = Form::Like("/([0-9A-Za-z._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*");

/// Shows a prefix, if there is one.
pub(super) fn shown(prefix: &str) -> Option<Shown> {
    if prefix.is_empty() {
        return None;
    }
    kinds::shown(prefix)
}

/// Reads the path rewrite of a route.
///
/// The inner `None`: paths stay as they are. The outer `None`: a value is wrong.
pub(super) fn read(fields: &mut Fields, path: Option<&PathPattern>) -> Option<Option<PathRewrite>> {
    let strip_node = fields.get("strip_prefix");
    let strip = strip_node.map_or(Some(String::new()), |node| {
        values::parsed(node, "a path such as \"/v1\"", stripped)
    });
    let add = fields.optional("add_prefix", String::new(), |node| {
        values::parsed(node, "a path such as \"/app\"", added)
    });
    let (strip, add) = (strip?, add?);
    if let (Some(node), Some(path)) = (strip_node, path)
        && !path.begins_with(&strip)
    {
        let remedy = match path {
            PathPattern::Regex(_) => {
                "the regular expression must begin with ^ and this text, so that each path does"
            }
            PathPattern::Prefix(_) | PathPattern::Exact(_) => {
                "the path of the route does not begin with it; change one"
            }
        };
        return node.refused(&format!("{remedy}; found {}", node.found()));
    }
    let is_any = !strip.is_empty() || !add.is_empty();
    Some(is_any.then_some(PathRewrite { strip, add }))
}

/// Checks a value of `strip_prefix`.
fn stripped(text: &str) -> Result<String, &'static str> {
    if !text.starts_with('/') {
        return Err("a prefix begins with /");
    }
    if text.contains(['?', '#']) {
        return Err("a prefix has no query or fragment; remove everything from ? or # on");
    }
    Ok(text.to_owned())
}

/// Checks a value of `add_prefix`.
fn added(text: &str) -> Result<String, &'static str> {
    let text = stripped(text)?;
    if !target::is_sendable(text.as_bytes()) {
        return Err(
            "what is added is sent as it is written; escape other characters than those of a URL's path, such as %20 for a blank",
        );
    }
    if !target::is_resolved(text.as_bytes()) {
        return Err("what is added has no empty segments, and none that is . or ..; remove them");
    }
    Ok(text)
}
