//! Readers of single values, such as a duration or a list.
//!
//! A reader gets the node of a value: the value with its location. It reports a wrong value, and
//! then returns `None`. `what`: the expected value, for messages.

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
    text_if(node, "a text in quotes", |_| true)
}

/// Reads a text if `fits` accepts it.
pub(crate) fn text_if<'r>(
    node: Node<'r>,
    what: &str,
    fits: impl FnOnce(&str) -> bool,
) -> Option<&'r str> {
    let text = node.value.as_str().filter(|text| fits(text));
    text.or_else(|| node.report_expected(what))
}

/// Reads a file name, and returns its absolute path.
pub(crate) fn file(node: Node, what: &str) -> Option<PathBuf> {
    let name = text_if(node, what, |name| !name.is_empty())?;
    Some(node.in_folder(name))
}

/// Reports a value with more than `max` items, which are called `things`. Returns whether it has
/// more.
pub(crate) fn report_excess(node: Node, max: usize, found: usize, things: &str) -> bool {
    if found > max {
        node.report_problem(&format!("it has at most {max} {things}; found {found}"));
    }
    found > max
}

/// Reads the name of a file that is read with the configuration, and records the file.
pub(crate) fn named_file(node: Node, kind: FileKind, what: &str) -> Option<PathBuf> {
    let path = file(node, what)?;
    node.report.add_named_file(path.clone(), kind);
    Some(path)
}

/// Reads the content of the file that a value names, at most `max_bytes`.
///
/// Reports the reason if it cannot be read, followed by `remedy`.
pub(crate) fn content(node: Node, path: &Path, max_bytes: u64, remedy: &str) -> Option<Vec<u8>> {
    match read_regular(path, max_bytes) {
        Ok(content) => {
            let shared = node.report.shared;
            shared.record_content(path, &content, node.is_secret());
            Some(content)
        }
        Err(error) => {
            let path = node.show_path(path);
            node.refuse_as_is(&format!("{path} cannot be read: {error}{remedy}"))
        }
    }
}

/// Returns whether a text is a token, as methods and field names are (RFC 9110, section 5.6.2).
pub(crate) fn is_token(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_part)
}

/// Reads a text with `parser`, whose errors are messages.
pub(crate) fn parse<T, E: Display>(
    node: Node,
    what: &str,
    parser: impl FnOnce(&str) -> Result<T, E>,
) -> Option<T> {
    let text = node.value.as_str().or_else(|| node.report_expected(what))?;
    if node.is_secret() {
        // The error may show a part of the value.
        return parser(text).ok().or_else(|| node.report_expected(what));
    }
    let report = |error| node.report_problem(&format!("{error}; found {}", node.found()));
    parser(text).map_err(report).ok()
}

/// Reports a text that would be right without its blanks, such as `"16 r/s"`.
///
/// `is_right`: whether a text is a right value. Returns whether a problem was reported.
fn report_blanks(node: Node, is_right: impl Fn(&str) -> bool) -> bool {
    let text = node.value.as_str().unwrap_or_default();
    let compact: String = text.split_whitespace().collect();
    let has_blanks = !node.is_secret() && compact != text;
    let is_problem = has_blanks && !is_right(text) && is_right(&compact);
    if is_problem {
        let (compact, found) = (toml_string(&compact), node.found());
        node.report_problem(&format!("write {compact}, without blanks; found {found}"));
    }
    is_problem
}

/// Reads a text as [`parse`] does. Reports a text that would be right without its blanks.
pub(crate) fn parse_compact<T: FromStr<Err: Display>>(node: Node, what: &str) -> Option<T> {
    if report_blanks(node, |text| text.parse::<T>().is_ok()) {
        return None;
    }
    parse(node, what, str::parse)
}

/// Reads a text with `parse`. If it is wrong, reports its blanks, or else the expected value.
pub(crate) fn read_compact<T>(
    node: Node,
    what: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Option<T> {
    if report_blanks(node, |text| parse(text).is_some()) {
        return None;
    }
    let value = node.value.as_str().and_then(parse);
    value.or_else(|| node.report_expected(what))
}

/// Reads `true` or `false`.
pub(crate) fn boolean(node: Node) -> Option<bool> {
    let value = node.value.as_bool();
    value.or_else(|| node.report_expected("true or false"))
}

/// Reads a whole number in a range.
pub(crate) fn whole(node: Node, range: RangeInclusive<u64>) -> Option<u64> {
    let number = node.value.as_integer();
    // Signed, because TOML also has -0.
    let number = number.and_then(|it| i128::from_str_radix(it.as_str(), it.radix()).ok());
    let number = number.and_then(|number| u64::try_from(number).ok());
    let in_range = number.filter(|number| range.contains(number));
    let (min, max) = (range.start(), range.end());
    in_range.or_else(|| node.report_expected(&format!("a whole number from {min} to {max}")))
}

/// Longest duration that a file may have.
pub(crate) const MAX_DURATION: Duration = Duration::from_secs(366 * 86_400);

/// Reads a duration; zero is allowed.
pub(crate) fn duration(node: Node) -> Option<Duration> {
    const WHAT: &str =
        "a whole number and a unit (d, h, m, s, ms, us, ns) in quotes, such as \"5s\", up to 366d";
    read_compact(node, WHAT, |text| {
        parse_duration(text).filter(|span| *span <= MAX_DURATION)
    })
}

/// Reads a duration that is not zero. A timeout of zero would let nothing succeed.
pub(crate) fn timeout(node: Node) -> Option<Duration> {
    let span = duration(node)?;
    if span.is_zero() {
        return node.report_expected("a duration above 0");
    }
    Some(span)
}

/// Reads a size in bytes; zero is allowed.
pub(crate) fn size(node: Node) -> Option<u64> {
    const WHAT: &str =
        "a whole number and a unit of 1024s (GB, MB, KB, B) in quotes, such as \"32KB\"";
    let DeValue::Integer(number) = node.value else {
        return read_compact(node, WHAT, parse_size);
    };
    let bytes = u64::from_str_radix(number.as_str(), number.radix());
    bytes.ok().or_else(|| node.report_expected(WHAT))
}

/// Reads `"none"` as `None`, or a duration with `read`.
pub(crate) fn none_or(
    node: Node,
    read: impl FnOnce(Node) -> Option<Duration>,
) -> Option<Option<Duration>> {
    if node.value.as_str() == Some("none") {
        return Some(None);
    }
    // Reports a text that is no duration, before `read` reports one that is out of range.
    let what = "\"none\", or a duration such as \"5s\"";
    read_compact(node, what, parse_duration)?;
    read(node).map(Some)
}

/// Reads a rate. `"none"` gives [`Rate::UNLIMITED`].
pub(crate) fn rate_or_unlimited(node: Node) -> Option<Rate> {
    if node.value.as_str() == Some("none") {
        return Some(Rate::UNLIMITED);
    }
    parse_compact(node, "\"none\", or a rate such as \"10r/s\"")
}

/// Reads one of several words, and returns its meaning. `words`: pairs of a word and a meaning.
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
    node.refuse(&format!("expected {known}; found {}{near}", node.found()))
}

/// Reads a list without duplicates, each item with `read`. Messages show `example`.
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
    non_empty_list(node, example, one)
}

/// Reads a list without duplicates that is not empty.
pub(crate) fn non_empty_list<T: PartialEq>(
    node: Node,
    example: &str,
    one: impl Fn(Node) -> Option<T>,
) -> Option<Vec<T>> {
    require_items(node, example)?;
    list(node, example, one)
}

/// Returns the items of a list. Reports an empty list, and then returns it.
pub(crate) fn require_items<'r>(node: Node<'r>, example: &str) -> Option<Vec<Node<'r>>> {
    let items = node.items_or(&format!("a list such as {example}"))?;
    if items.is_empty() {
        node.report_problem(&format!("the list is empty; write one such as {example}"));
    }
    Some(items)
}

/// Parser of a text: the expected value for messages, and the function that parses it.
pub(crate) type TextParser<T> = (&'static str, fn(&str) -> Option<T>);

/// Parser of a network or a single address.
pub(crate) const NETWORK: TextParser<IpNet> =
    ("an address or network such as \"10.0.0.0/8\"", to_network);

/// Parser of a network; `None` in its result stands for `unix:`.
pub(crate) const PEER: TextParser<Option<IpNet>> = (
    "an address or network such as \"10.0.0.0/8\", or \"unix:\" for socket files",
    |text| match text {
        "unix:" => Some(None),
        _ => to_network(text).map(Some),
    },
);

/// Reads a text with a parser.
pub(crate) fn parse_as<T>(node: Node, (expected, parse): TextParser<T>) -> Option<T> {
    let value = node.value.as_str().and_then(parse);
    value.or_else(|| node.report_expected(expected))
}

/// Parses a network, or a single address.
///
/// Bits after the prefix are cleared. IPv4 in IPv6 (`::ffff:192.0.2.1`) becomes IPv4, as in the
/// addresses that are compared with the network.
pub(crate) fn to_network(text: &str) -> Option<IpNet> {
    let single = || text.parse::<IpAddr>().map(IpNet::from);
    let network = text.parse::<IpNet>().or_else(|_| single()).ok()?;
    Some(match network.trunc() {
        // An IPv4 address is in the last 32 bits.
        IpNet::V6(v6) if v6.prefix_len() >= 96 => v6
            .addr()
            .to_ipv4_mapped()
            .and_then(|v4| Ipv4Net::new(v4, v6.prefix_len() - 96).ok())
            .map_or(IpNet::V6(v6), IpNet::V4),
        network => network,
    })
}
