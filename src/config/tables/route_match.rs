//! Readers of the fields that select the requests of a route: `path`, `host`, `methods` and
//! `match`.
//!
//! `settings::route_match` has the types of their values, and `kinds` explains kinds of values.

use std::borrow::Cow;
use std::net::Ipv6Addr;

use super::prelude::*;
use crate::{ByteRegex, HostPattern, Matcher, MatcherInput, MatcherValue, PathPattern};

/// Prefix of paths, exact path or regular expression.
pub(super) const PATH: Kind<PathPattern> = Kind {
    form: Form::Regex("/[^?#]*|=\\s*/[^?#]*|regex:[^\\s](.|\\n)*"),
    read: |node| values::parse(node, "a path such as \"/\" or \"= /exact\"", parse_path),
    show: show_text,
};

/// Form of a host: a name, a wildcard such as `*.example.com`, or an IPv6 address in brackets.
const HOST_FORM: Form = Form::Regex("([*][.])?[0-9A-Za-z._-]+|\\[[0-9a-fA-F:.]+\\]");

/// One host, or a list of hosts.
pub(super) const HOSTS: Kind<Vec<HostPattern>> = Kind {
    form: Form::OneOf(&[HOST_FORM, Form::UniqueList(&HOST_FORM, 1)]),
    read: |node| {
        const EXAMPLE: &str = "[\"api.example.com\", \"*.example.com\"]";
        let what = format!("a host such as \"api.example.com\", or a list such as {EXAMPLE}");
        values::one_or_list(node, EXAMPLE, |item| values::parse(item, &what, parse_host))
    },
    show: |it| show_one_or_texts(it),
};

/// List of methods.
pub(super) const METHODS: Kind<Vec<String>> = Kind {
    form: Form::UniqueList(&Form::Regex("[0-9A-Z!#$%&'*+.^_`|~-]+"), 0),
    read: |node| {
        let what = "a method such as \"POST\"";
        values::list(node, "[\"POST\"]", |item| {
            values::parse(item, what, parse_method)
        })
    },
    show: |it| show_texts(it),
};

/// Parses a prefix, an exact path or a regular expression.
fn parse_path(text: &str) -> Result<PathPattern, Cow<'static, str>> {
    if let Some(regex) = text.strip_prefix("regex:") {
        if regex.is_empty() {
            return Err("a regular expression is missing behind regex:".into());
        }
        if regex.starts_with(char::is_whitespace) {
            return Err("a regular expression begins right behind regex:; remove the blank, or write [ ] for one".into());
        }
        return Ok(PathPattern::Regex(ByteRegex::new(regex)?));
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

/// Parses a host name, an IPv6 address in brackets, or a wildcard such as `*.example.com`.
fn parse_host(text: &str) -> Result<HostPattern, &'static str> {
    const WILDCARD: &str = "a * stands for whole labels at the beginning, as in \"*.example.com\"";
    let is_name = |text: &str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        !text.is_empty() && text.chars().all(is_part)
    };
    if text == "*" {
        return Err("leave host out to match every host");
    }
    let lower = text.to_ascii_lowercase();
    if let Some(suffix) = lower.strip_prefix('*') {
        let is_suffix = suffix.strip_prefix('.').is_some_and(is_name);
        let pattern = is_suffix.then(|| HostPattern::Below(suffix.to_owned()));
        return pattern.ok_or(WILDCARD);
    }
    let address = lower.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    if is_name(&lower) || address.is_some_and(|it| it.parse::<Ipv6Addr>().is_ok()) {
        Ok(HostPattern::Exact(lower))
    } else if lower.contains('*') {
        Err(WILDCARD)
    } else {
        Err("a host is a name such as \"api.example.com\", without scheme, port or path")
    }
}

/// Maximum number of conditions of a route. All are compared with each candidate request.
const MAX_CONDITIONS: usize = 16;

const CONDITIONS_FORM: Form = Form::BoundedByName(
    "(header|cookie):[0-9A-Za-z!#$%&'*+.^_`|~-]+|query:.+",
    &Form::Text,
    [0, MAX_CONDITIONS],
);

/// Table of conditions.
pub(super) const CONDITIONS: Kind<Vec<Matcher>> = Kind {
    form: CONDITIONS_FORM,
    read: read_conditions,
    show: |it| {
        let condition = |condition: &Matcher| {
            let (input, value) = (condition.input.to_string(), condition.value.to_string());
            (toml_string(&input), toml_text(&value))
        };
        (!it.is_empty()).then(|| Shown::Value(toml_table(it.iter().map(condition))))
    },
};

/// Reads `match`. The order of the conditions does not matter, so they are sorted.
fn read_conditions(node: Node) -> Option<Vec<Matcher>> {
    let entries = node.entries_or("a table such as { \"header:x-version\" = \"2\" }")?;
    if values::report_excess(node, MAX_CONDITIONS, entries.len(), "conditions") {
        return None;
    }
    // Reads all conditions first, so that one wrong condition hides no other.
    let all: Vec<Option<Matcher>> = entries.iter().map(|it| read_condition(*it)).collect();
    let mut all: Vec<Matcher> = all.into_iter().collect::<Option<_>>()?;
    all.sort_by_cached_key(Matcher::to_string);
    // Field names are compared without case.
    if let Some(pair) = all.windows(2).find(|pair| pair[0].input == pair[1].input) {
        return node.refuse(&format!("{} is there twice; remove one", pair[0].input));
    }
    Some(all)
}

/// Reads one condition of `match`.
fn read_condition(entry: Node) -> Option<Matcher> {
    let (kind, name) = entry.name.split_once(':').unwrap_or_default();
    let input = match kind {
        "header" if values::is_token(name) => Some(MatcherInput::Header(name.to_ascii_lowercase())),
        "query" if !name.is_empty() => Some(MatcherInput::Query(name.to_owned())),
        "cookie" if values::is_token(name) => Some(MatcherInput::Cookie(name.to_owned())),
        _ => entry.refuse_as_is(
            "a condition is on \"header:NAME\", \"query:NAME\" or \"cookie:NAME\", such as \"header:x-version\"",
        ),
    };
    let what = "a text such as \"2\", or \"regex:^on\"";
    let value = values::parse(entry, what, |text| match text.strip_prefix("regex:") {
        Some(regex) => ByteRegex::new(regex).map(MatcherValue::Regex),
        None => Ok(MatcherValue::Equal(text.to_owned())),
    });
    Some(Matcher {
        input: input?,
        value: value?,
    })
}

/// Checks that a method is a word in capitals, and returns it.
fn parse_method(text: &str) -> Result<String, String> {
    if !values::is_token(text) {
        return Err("a method is a word such as \"POST\"".to_owned());
    }
    let capitals = text.to_ascii_uppercase();
    if capitals != text {
        return Err(format!("methods are written in capitals, \"{capitals}\""));
    }
    Ok(capitals)
}
