//! Readers of single values. A reader reports a wrong value, and then returns `None`.

use std::fmt::Display;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net};
use limit::{Rate, parse_duration};
use toml::de::DeValue;

use crate::node::Node;
use crate::size::parse_size;
use crate::suggest::nearest;
use crate::toml_string::toml_string;
use crate::{FileKind, read_regular};

/// Reads any text.
pub(crate) fn text(node: Node<'_>) -> Option<&str> {
    fitting(node, "a text in quotes", |_| true)
}

/// Reads a text that fits. `what`: the expected value, for messages.
pub(crate) fn fitting<'r>(
    node: Node<'r>,
    what: &str,
    fits: impl FnOnce(&str) -> bool,
) -> Option<&'r str> {
    let text = node.value.as_str().filter(|text| fits(text));
    text.or_else(|| node.expected(what))
}

/// Reads a file name, and returns its absolute path. `what`: the expected value, for messages.
pub(crate) fn file(node: Node, what: &str) -> Option<PathBuf> {
    let name = fitting(node, what, |name| !name.is_empty())?;
    Some(node.in_folder(name))
}

/// Reports a value with more than `most` items. Returns whether it has more.
pub(crate) fn is_too_long(node: Node, most: usize, found: usize, things: &str) -> bool {
    if found > most {
        node.wrong(&format!("it has at most {most} {things}; found {found}"));
    }
    found > most
}

/// Reads the path of a file that is read with the configuration. `what`: as in [`file`].
pub(crate) fn named_file(node: Node, kind: FileKind, what: &str) -> Option<PathBuf> {
    let path = file(node, what)?;
    node.report.add_named_file(path.clone(), kind);
    Some(path)
}

/// Reads the content of a named file of at most `most` bytes.
///
/// Reports the reason if it cannot be read, followed by `remedy`.
pub(crate) fn content(node: Node, path: &Path, most: u64, remedy: &str) -> Option<Vec<u8>> {
    match read_regular(path, most) {
        Ok(content) => {
            let shared = node.report.shared;
            shared.record_content(path, &content, node.is_secret());
            Some(content)
        }
        Err(error) => {
            let path = node.shown(path);
            node.refused_as_is(&format!("{path} cannot be read: {error}{remedy}"))
        }
    }
}

/// Returns whether a text is a token, as methods and field names are (RFC 9110, section 5.6.2).
pub(crate) fn is_token(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_part)
}

/// Reads a text with `parse`. `what`: the expected value, for messages.
pub(crate) fn parsed<T, E: Display>(
    node: Node,
    what: &str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Option<T> {
    let text = node.value.as_str().or_else(|| node.expected(what))?;
    if node.is_secret() {
        // The error may show a part of the value.
        return parse(text).ok().or_else(|| node.expected(what));
    }
    let report = |error| node.wrong(&format!("{error}; found {}", node.found()));
    parse(text).map_err(report).ok()
}

/// Reports a text that would be right without its blanks, such as `"16 r/s"`.
///
/// Returns whether it is such a text.
fn is_spaced(node: Node, is_right: impl Fn(&str) -> bool) -> bool {
    let text = node.value.as_str().unwrap_or_default();
    let tight: String = text.split_whitespace().collect();
    let is_spaced = !node.is_secret() && tight != text && !is_right(text) && is_right(&tight);
    if is_spaced {
        let (tight, found) = (toml_string(&tight), node.found());
        node.wrong(&format!("write {tight}, without blanks; found {found}"));
    }
    is_spaced
}

/// Reads a text as [`parsed`] does. Reports a text that would be right without its blanks.
pub(crate) fn compact<T: FromStr<Err: Display>>(node: Node, what: &str) -> Option<T> {
    if is_spaced(node, |text| text.parse::<T>().is_ok()) {
        return None;
    }
    parsed(node, what, str::parse)
}

/// Reads a text with `parse`. Otherwise reports its blanks, or the expected value.
pub(crate) fn without_blanks<T>(
    node: Node,
    what: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Option<T> {
    if is_spaced(node, |text| parse(text).is_some()) {
        return None;
    }
    let value = node.value.as_str().and_then(parse);
    value.or_else(|| node.expected(what))
}

/// Reads `true` or `false`.
pub(crate) fn boolean(node: Node) -> Option<bool> {
    let value = node.value.as_bool();
    value.or_else(|| node.expected("true or false"))
}

/// Reads a whole number in a range.
pub(crate) fn whole(node: Node, range: RangeInclusive<u64>) -> Option<u64> {
    let number = node.value.as_integer();
    // Signed, because TOML has -0.
    let number = number.and_then(|n| i128::from_str_radix(n.as_str(), n.radix()).ok());
    let number = number.and_then(|n| u64::try_from(n).ok());
    let in_range = number.filter(|n| range.contains(n));
    let (min, max) = (range.start(), range.end());
    in_range.or_else(|| node.expected(&format!("a whole number from {min} to {max}")))
}

/// Longest duration that a file may have.
pub(crate) const MAX_DURATION: Duration = Duration::from_secs(366 * 86_400);

/// Reads a duration; zero is allowed.
pub(crate) fn duration(node: Node) -> Option<Duration> {
    const WHAT: &str =
        "a whole number and a unit (d, h, m, s, ms, us, ns) in quotes, such as \"5s\", up to 366d";
    without_blanks(node, WHAT, |text| {
        parse_duration(text).filter(|span| *span <= MAX_DURATION)
    })
}

/// Reads a duration that is not zero. A timeout of zero would let nothing succeed.
pub(crate) fn timeout(node: Node) -> Option<Duration> {
    let span = duration(node)?;
    if span.is_zero() {
        return node.expected("a duration above 0");
    }
    Some(span)
}

/// Reads a size in bytes; zero is allowed.
pub(crate) fn size(node: Node) -> Option<u64> {
    const WHAT: &str =
        "a whole number and a unit of 1024s (GB, MB, KB, B) in quotes, such as \"32KB\"";
    let DeValue::Integer(number) = node.value else {
        return without_blanks(node, WHAT, parse_size);
    };
    let bytes = u64::from_str_radix(number.as_str(), number.radix());
    bytes.ok().or_else(|| node.expected(WHAT))
}

/// Reads `"none"`, or a duration with `read`.
pub(crate) fn none_or(
    node: Node,
    read: impl FnOnce(Node) -> Option<Duration>,
) -> Option<Option<Duration>> {
    if node.value.as_str() == Some("none") {
        return Some(None);
    }
    // Reports a text that is no duration, before `read` reports one that is out of range.
    let what = "\"none\", or a duration such as \"5s\"";
    without_blanks(node, what, parse_duration)?;
    read(node).map(Some)
}

/// Reads a rate. `"none"` gives [`Rate::UNLIMITED`].
pub(crate) fn rate_or_unlimited(node: Node) -> Option<Rate> {
    if node.value.as_str() == Some("none") {
        return Some(Rate::UNLIMITED);
    }
    compact(node, "\"none\", or a rate such as \"10r/s\"")
}

/// Reads one of several words.
pub(crate) fn choice<T: Copy>(node: Node, words: &[(&str, T)]) -> Option<T> {
    let given = node.value.as_str();
    if let Some((_, meaning)) = words.iter().find(|(word, _)| given == Some(word)) {
        return Some(*meaning);
    }
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let near = given.and_then(|given| nearest(given, &known));
    let near = near.map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
    let known: Vec<String> = known.into_iter().map(toml_string).collect();
    let known = known.join(" or ");
    node.refused(&format!("expected {known}; found {}{near}", node.found()))
}

/// Reads a list without duplicates. Messages show `example`.
pub(crate) fn list<T: PartialEq>(
    node: Node,
    example: &str,
    mut read: impl FnMut(Node) -> Option<T>,
) -> Option<Vec<T>> {
    let items = node.items_or(&format!("a list such as {example}"))?;
    let mut values: Vec<Option<T>> = Vec::new();
    for item in items {
        let value = read(item);
        if value.is_some() && values.contains(&value) {
            item.report_as_is(&format!("{} is listed twice; remove one", item.found()));
        }
        values.push(value);
    }
    values.into_iter().collect()
}

/// Reads one value, or a list without duplicates that is not empty.
pub(crate) fn one_or_list<T: PartialEq>(
    node: Node,
    example: &str,
    one: impl Fn(Node) -> Option<T>,
) -> Option<Vec<T>> {
    if node.items().is_none() {
        return one(node).map(|value| vec![value]);
    }
    filled_list(node, example, one)
}

/// Reads a list without duplicates that is not empty.
pub(crate) fn filled_list<T: PartialEq>(
    node: Node,
    example: &str,
    one: impl Fn(Node) -> Option<T>,
) -> Option<Vec<T>> {
    filled(node, example)?;
    list(node, example, one)
}

/// Returns the items of a list that must not be empty.
pub(crate) fn filled<'r>(node: Node<'r>, example: &str) -> Option<Vec<Node<'r>>> {
    let items = node.items_or(&format!("a list such as {example}"))?;
    if items.is_empty() {
        node.wrong(&format!("the list is empty; write one such as {example}"));
    }
    Some(items)
}

/// Expected value for messages, and the function that reads it.
pub(crate) type Pattern<T> = (&'static str, fn(&str) -> Option<T>);

pub(crate) const NETWORK: Pattern<IpNet> =
    ("an address or network such as \"10.0.0.0/8\"", network_of);

/// Reads a network; `None` stands for `unix:`.
pub(crate) const PEER: Pattern<Option<IpNet>> = (
    "an address or network such as \"10.0.0.0/8\", or \"unix:\" for socket files",
    |text| match text {
        "unix:" => Some(None),
        _ => network_of(text).map(Some),
    },
);

/// Reads a text that must have this form.
pub(crate) fn pattern<T>(node: Node, (expected, parse): Pattern<T>) -> Option<T> {
    let value = node.value.as_str().and_then(parse);
    value.or_else(|| node.expected(expected))
}

/// Reads a network, or a single address.
///
/// Bits after the prefix are cleared. IPv4 in IPv6 becomes IPv4, as in the addresses that are
/// compared with the network.
pub(crate) fn network_of(text: &str) -> Option<IpNet> {
    let alone = || text.parse::<IpAddr>().map(IpNet::from);
    let network = text.parse::<IpNet>().or_else(|_| alone()).ok()?;
    Some(match network.trunc() {
        IpNet::V6(v6) if v6.prefix_len() >= 96 => v6
            .addr()
            .to_ipv4_mapped()
            .and_then(|v4| Ipv4Net::new(v4, v6.prefix_len() - 96).ok())
            .map_or(IpNet::V6(v6), IpNet::V4),
        network => network,
    })
}
