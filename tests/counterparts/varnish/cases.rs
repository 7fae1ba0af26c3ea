//! Cases of the cache suite: a response, two requests, and whether the second may get it.

use crate::support::scripted::Script;

/// One case per line: the rule, the exceptions, a name, the origin's response, and the requests.
///
/// - The rule: `may` if RFC 9111 lets a shared cache give the response to the second request, `no`
///   if it
///   forbids it.
/// - The exceptions: programs that do not follow it; `d` for drip, `n` for nginx, `v` for Varnish.
/// - The response: a status if it is not 200, and fields. ` ~ ` ends a field.
/// - The requests: a method if it is not GET, and fields. Of three, the middle one is sent at once.
///   None:
///   two GETs.
const CASES: &str = include_str!("cases.txt");

/// Method of a request, and its fields, each with its line end.
pub type Request = (&'static str, String);

#[derive(Clone, Debug)]
pub struct Case {
    pub name: &'static str,
    pub may: bool,
    pub script: Script,
    /// Programs that do not follow the rule.
    pub differs: &'static str,
    pub first: Request,
    pub between: Option<Request>,
    pub second: Request,
}

/// Returns all cases, each with a unique name.
pub fn cases() -> Vec<Case> {
    let lines = CASES.lines().filter(|line| !line.starts_with('#'));
    lines.map(case).collect()
}

fn case(line: &'static str) -> Case {
    let columns: Vec<&str> = line.split('|').map(str::trim).collect();
    let [rule, differs, name, answer, requests @ ..] = &columns[..] else {
        panic!("{line}")
    };
    let (status, fields) = match answer.split(' ').next().map(str::parse) {
        Some(Ok(status)) => (status, &answer[3..]),
        _ => (200, *answer),
    };
    let mut requests = requests.iter().copied().map(request);
    let first = requests.next();
    let (between, second) = match (requests.next(), requests.next()) {
        (between, Some(second)) => (between, Some(second)),
        (second, None) => (None, second),
    };
    Case {
        name,
        may: *rule == "may",
        script: Script {
            status,
            fields: fields.trim().replace(" ~ ", "\n").leak(),
        },
        differs,
        first: first.unwrap_or_else(|| request("")),
        between,
        second: second.unwrap_or_else(|| request("")),
    }
}

fn request(text: &'static str) -> Request {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let has_method = !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase());
    let (method, fields) = if has_method {
        (word, rest)
    } else {
        ("GET", text)
    };
    let lines = fields.split(" ~ ").filter(|field| !field.is_empty());
    (method, lines.flat_map(|field| [field, "\r\n"]).collect())
}
