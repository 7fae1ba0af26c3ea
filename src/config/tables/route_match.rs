//! Which requests a route takes: its `path`, `host` and `methods`.

use std::borrow::Cow;
use std::net::Ipv6Addr;

use super::prelude::*;
use crate::config::{PathPattern, PathRegex};

pub(super) const PATH: Kind<PathPattern> = kind(
    Form::Like("/[^?#]*|=\\s*/[^?#]*|regex:[^\\s](.|\\n)*"),
    |node| values::parsed(node, "a path such as \"/\" or \"= /exact\"", path),
    shown,
);

pub(super) const HOST: Kind<Option<String>> = kind(
    Form::Like("[0-9A-Za-z._-]+|\\[[0-9a-fA-F:.]+\\]"),
    |node| values::parsed(node, "a host such as \"api.example.com\"", host).map(Some),
    |it| shown(it.as_ref()?),
);

pub(super) const METHODS: Kind<Vec<String>> = kind(
    Form::List(&Form::Like("[0-9A-Z!#$%&'*+.^_`|~-]+"), 0),
    |node| {
        let method = |item: Node| values::parsed(item, "a method such as \"POST\"", method);
        values::list("[\"POST\"]", method)(node)
    },
    |it| texts(it),
);

fn path(text: &str) -> Result<PathPattern, Cow<'static, str>> {
    if let Some(regex) = text.strip_prefix("regex:") {
        if regex.is_empty() {
            return Err("a regular expression is missing behind regex:".into());
        }
        if regex.starts_with(char::is_whitespace) {
            return Err("a regular expression begins right behind regex:; remove the blank, or write [ ] for one".into());
        }
        let regex = PathRegex::new(regex).map_err(|error| error.to_string())?;
        return Ok(PathPattern::Regex(regex));
    }
    let (path, pattern): (_, fn(String) -> _) = match text.strip_prefix('=') {
        Some(exact) => (exact.trim_start(), PathPattern::Exact),
        None => (text, PathPattern::Prefix),
    };
    if !path.starts_with('/') {
        return Err("a path begins with /, or with = / to match only itself".into());
    }
    if path.contains(['?', '#']) {
        return Err("a path has no query or fragment; remove everything from ? or # on".into());
    }
    Ok(pattern(path.to_owned()))
}

fn host(text: &str) -> Result<String, &'static str> {
    let letter = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let name = !text.is_empty() && text.chars().all(letter);
    let address = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    if name || address.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok()) {
        Ok(text.to_ascii_lowercase())
    } else if text.contains('*') {
        Err("a host is one name; write a route for each, or leave host out to match all")
    } else {
        Err("a host is a name such as \"api.example.com\", without scheme, port or path")
    }
}

fn method(text: &str) -> Result<String, String> {
    if !values::is_token(text) {
        return Err("a method is a word such as \"POST\"".to_owned());
    }
    let capitals = text.to_ascii_uppercase();
    if capitals != text {
        return Err(format!("methods are written in capitals, \"{capitals}\""));
    }
    Ok(capitals)
}
