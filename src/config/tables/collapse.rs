//! `[routes.collapse]`: equal requests that come together share one answer of the origin.
//!
//! In `table!`, an entry is a field of the file: its type, its reader with the default, when a
//! change takes effect, and its meaning (see `table_settings`, and `kinds` for readers such as
//! `duration`).

use std::num::NonZeroU64;
use std::time::Duration;

use super::prelude::*;
use super::zone::{self, key_text, varying_key};
use crate::KeyTemplate;

table! {
    /// `[routes.collapse]`: equal concurrent requests share one request to the origin.
    ///
    /// One of them, the leader, is sent. The others follow it: they wait for its answer.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Collapse {
        /// Never constant.
        key: KeyTemplate = KEY.with_default("\"$scheme$host$request_uri\""), NextRequest,
            "Requests with the same value of this key, and of the fields in vary, share an answer.";
        /// In lower case, without duplicates; at most [`MAX_NAMES`](Self::MAX_NAMES).
        vary: Vec<String> = VARY.with_default("[\"accept-encoding\", \"accept-language\"]"), NextRequest,
            "Request fields that are part of the key; an answer whose Vary names another one is not shared.";
        /// Zero: the answer serves only the requests that waited for it. At most an hour.
        keep: Duration = duration::<0, HOUR>().with_default("\"0\""), NextRequest,
            "How long an answer serves later requests, up to 1h; \"0\": only the requests that waited for it.";
        /// Counts from the end of `keep`. Zero: not at all. At most a week.
        stale: Duration = duration::<0, { 7 * 24 * HOUR }>().with_default("\"0\""), NextRequest,
            "How long after keep an answer may serve while the origin is in trouble, up to 7d; \"0\": not at all.";
        /// From 100 ms to an hour.
        follow_timeout: Duration = duration::<100_000_000, HOUR>().with_default("\"5s\""), NextRequest,
            "How long a request waits for the answer of another one that runs at the origin, 100ms to 1h; then it is sent itself.";
        /// In bytes; at most 1 GB.
        max_size: NonZeroU64 = size::<_, 1, { 1 << 30 }>().with_default("\"1MB\""), NextRequest,
            "Largest body of an answer that is shared: \"1B\" to \"1GB\".";
        /// Without duplicates; at most [`MAX_NAMES`](Self::MAX_NAMES). `None`: any cookie prevents
        /// sharing.
        cookies: Option<Vec<String>> = COOKIES.optional(), NextRequest,
            "A request with one of these cookies does not share, and its other cookies are ignored. Default: a request with any cookie does not share.";
    }
}

/// Key by which requests are equal.
const KEY: Kind<KeyTemplate> = Kind {
    read: |node| {
        let why = "all requests of the route would get one answer; name one such as \"$request_uri\", or remove key";
        varying_key(node, key_text(node)?, why)
    },
    ..zone::KEY
};

/// List of request fields.
const VARY: Kind<Vec<String>> = Kind {
    form: Form::UniqueList(&HEADER_NAME_FORM, 0),
    read: |node| read_names(node, "[\"accept-encoding\"]", read_field_name),
    show: |it| show_texts(it),
};

/// List of cookies.
const COOKIES: Kind<Vec<String>> = Kind {
    form: Form::UniqueList(&HEADER_NAME_FORM, 0),
    read: |node| read_names(node, "[\"session\"]", read_cookie_name),
    show: |it| show_texts(it),
};

/// Reads a list of names, each with `read`. Messages show `example`.
fn read_names(node: Node, example: &str, read: fn(Node) -> Option<String>) -> Option<Vec<String>> {
    let names = values::list(node, example, read)?;
    (!values::report_excess(node, Collapse::MAX_NAMES, names.len(), "names")).then_some(names)
}

/// Reads the name of a request field that an answer may vary by.
fn read_field_name(node: Node) -> Option<String> {
    const WHAT: &str = "the name of a header field such as \"accept-encoding\"";
    let name = node.value.as_str().or_else(|| node.report_expected(WHAT))?;
    let name = name.to_ascii_lowercase();
    let problem = match &*name {
        "*" => {
            "\"*\" means that no two requests are equal, so nothing would be shared; name the fields, or remove [routes.collapse]"
        }
        "cookie" => {
            "the whole Cookie differs for nearly every client; remove it, and name in cookies those without which a request may share"
        }
        "authorization" => "requests with credentials are never shared; remove it",
        name if !values::is_token(name) => return node.report_expected(WHAT),
        _ => return Some(name),
    };
    node.refuse(problem)
}

/// Reads the name of a cookie (RFC 6265, section 4.1.1).
fn read_cookie_name(node: Node) -> Option<String> {
    let what = "the name of a cookie such as \"session\"";
    values::text_if(node, what, values::is_token).map(str::to_owned)
}

impl Collapse {
    /// Maximum number of names in `vary`, and in `cookies`. Each request is compared with every
    /// name.
    pub const MAX_NAMES: usize = 16;
}

/// Reads `[routes.collapse]`.
///
/// `methods`: methods of the route, empty for all methods; `None` if they are wrong.
pub(super) fn read(node: Node, methods: Option<&[String]>) -> Option<Collapse> {
    let fields = Fields::begin(node, "[routes.collapse]".to_owned(), Collapse::TABLE)?;
    if methods.is_some_and(|all| !all.is_empty() && !all.iter().any(|it| it == "GET")) {
        node.report_as_is("only GET and HEAD are shared, and methods of this route has no GET; add \"GET\" to methods, or remove this table");
    }
    Some(Collapse::read_all(fields))
}
