//! The names of servers: whole ones, wildcards, and regular expressions.
//!
//! nginx takes the server with this name, then the one with the longest wildcard, then the first
//! one with an expression. An expression of a few names becomes these, where no other server has
//! them.

use std::collections::HashMap;

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

use super::{pcre, probe};
use crate::tools::import::notes::{Notes, Place};

/// Maximum number of names that an expression becomes.
const MAX_OF_EXPRESSION: usize = 64;

/// The names of a server as they are read.
#[derive(Default)]
pub(super) struct Names {
    pub(super) list: Vec<String>,
    pub(super) expressions: Vec<Expression>,
    /// Whether there are names that no route can have.
    pub(super) has_others: bool,
}

/// A name that is a regular expression.
pub(super) struct Expression {
    /// Without `~`.
    pub(super) text: String,
    pub(super) place: Place,
}

impl Names {
    pub(super) fn add(&mut self, name: &str, place: Place, notes: &mut Notes) {
        if name == "_" || name.is_empty() {
            return;
        }
        if let Some(text) = name.strip_prefix('~') {
            let text = text.to_owned();
            return self.expressions.push(Expression { text, place });
        }
        let lower = name.to_ascii_lowercase();
        let both = match lower.strip_prefix('.') {
            Some(whole) => vec![whole.to_owned(), format!("*.{whole}")],
            None => vec![lower],
        };
        for name in both {
            if !probe::host(&name) {
                self.has_others = true;
                notes.add(place, format!("server_name {name}: drip has whole names and wildcards such as *.example.com; this one is left out"));
            } else if !self.list.contains(&name) {
                self.list.push(name);
            }
        }
    }
}

impl Expression {
    /// The only names that it matches; `None` if there are more than a few.
    pub(super) fn names(&self) -> Option<Vec<String>> {
        let translated = pcre::translate(&self.text, true).filter(|it| it.is_exact)?;
        // nginx finds the end before a line feed, too, which no host has.
        let text = translated.text.replace("\\n?$", "$");
        let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
        let parsed = parser.parse(&text).ok()?;
        let HirKind::Concat(parts) = parsed.kind() else {
            return None;
        };
        let [first, inside @ .., last] = &parts[..] else {
            return None;
        };
        let is = |part: &Hir, look| *part.kind() == HirKind::Look(look);
        if !is(first, Look::Start) || !is(last, Look::End) {
            return None;
        }
        let mut texts = vec![String::new()];
        for part in inside {
            texts = joined(&texts, &texts_of(part)?)?;
        }
        let mut names: Vec<String> = Vec::new();
        for text in texts {
            let name = text.to_ascii_lowercase();
            if !probe::host(&name) || name.contains('*') {
                return None;
            }
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Some(names)
    }

    /// Whether it may match a host.
    pub(super) fn may_match(&self, host: &str) -> bool {
        let translated = pcre::translate(&self.text, true);
        translated.is_none_or(|it| pcre::matches(&it.text, host))
    }
}

/// All texts that a part of an expression matches; `None` if there are too many.
fn texts_of(part: &Hir) -> Option<Vec<String>> {
    match part.kind() {
        HirKind::Empty => Some(vec![String::new()]),
        HirKind::Literal(literal) => Some(vec![String::from_utf8(literal.0.to_vec()).ok()?]),
        HirKind::Class(class) => class_texts(class),
        HirKind::Capture(capture) => texts_of(&capture.sub),
        HirKind::Repetition(repetition) => {
            let most = repetition.max.filter(|most| *most <= 8)?;
            let once = texts_of(&repetition.sub)?;
            let (mut all, mut last) = (Vec::new(), vec![String::new()]);
            for count in 0..=most {
                if count >= repetition.min {
                    all.extend(last.iter().cloned());
                }
                if count < most {
                    last = joined(&last, &once)?;
                }
            }
            (all.len() <= MAX_OF_EXPRESSION).then_some(all)
        }
        HirKind::Concat(parts) => {
            let mut texts = vec![String::new()];
            for part in parts {
                texts = joined(&texts, &texts_of(part)?)?;
            }
            Some(texts)
        }
        HirKind::Alternation(parts) => {
            let mut texts = Vec::new();
            for part in parts {
                texts.extend(texts_of(part)?);
            }
            (texts.len() <= MAX_OF_EXPRESSION).then_some(texts)
        }
        HirKind::Look(_) => None,
    }
}

/// The letters and signs of a class, in lower case; `None` if there are too many, or others.
fn class_texts(class: &Class) -> Option<Vec<String>> {
    let ranges: Vec<(u32, u32)> = match class {
        Class::Bytes(class) => class
            .iter()
            .map(|it| (it.start().into(), it.end().into()))
            .collect(),
        Class::Unicode(class) => class
            .iter()
            .map(|it| (it.start().into(), it.end().into()))
            .collect(),
    };
    let mut texts: Vec<String> = Vec::new();
    for (first, last) in ranges {
        for code in first..=last {
            let letter = u8::try_from(code).ok().filter(u8::is_ascii)?;
            let text = char::from(letter).to_ascii_lowercase().to_string();
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
    }
    Some(texts)
}

/// Each of the first texts with each of the second behind it.
fn joined(first: &[String], second: &[String]) -> Option<Vec<String>> {
    if first.len() * second.len() > MAX_OF_EXPRESSION {
        return None;
    }
    let with = |text: &String| {
        second
            .iter()
            .map(|more| format!("{text}{more}"))
            .collect::<Vec<_>>()
    };
    Some(first.iter().flat_map(with).collect())
}

/// The wildcards that take a host, or all hosts of a wildcard, the longest first.
pub(super) fn covering(name: &str) -> impl Iterator<Item = String> + '_ {
    let whole = name.strip_prefix("*.").unwrap_or(name);
    whole
        .match_indices('.')
        .map(|(at, _)| format!("*{}", &whole[at..]))
}

/// What a map has for a name, or for the longest wildcard that takes it.
pub(super) fn lookup<V: Copy>(map: &HashMap<&str, V>, name: &str) -> Option<V> {
    let exact = map.get(name).copied();
    exact.or_else(|| covering(name).find_map(|wildcard| map.get(wildcard.as_str()).copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_of_a_few_names_is_these() {
        for (text, names) in [
            (
                "^(www\\.)?example\\.com$",
                Some("example.com www.example.com"),
            ),
            (
                "^(?<sub>a|b)\\.example\\.com$",
                Some("a.example.com b.example.com"),
            ),
            ("^app[12]\\.test$", Some("app1.test app2.test")),
            ("^APP\\.test$", Some("app.test")),
            ("^app.test$", None),
            ("^.+\\.example\\.com$", None),
            ("example\\.com$", None),
            ("^example\\.com", None),
            ("^a\\.test$|^b\\.test$", None),
            ("^[a-z]{2}\\.test$", None),
            ("^(?!a)b\\.test$", None),
        ] {
            let place = Place { file: 0, line: 1 };
            let text = text.to_owned();
            let found = Expression { text, place }.names();
            let mut found = found.map(|mut names| {
                names.sort();
                names.join(" ")
            });
            assert_eq!(found.take().as_deref(), names);
        }
    }

    #[test]
    fn the_longest_wildcard_comes_first() {
        let all: Vec<_> = covering("a.b.example.com").collect();
        assert_eq!(all, ["*.b.example.com", "*.example.com", "*.com"]);
        assert_eq!(covering("*.b.com").collect::<Vec<_>>(), ["*.com"]);
        assert_eq!(covering("localhost").count(), 0);
    }
}
