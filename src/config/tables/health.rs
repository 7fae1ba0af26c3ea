//! `[origins.NAME.health]`: requests that check whether the servers of an origin work.
//!
//! In `table!`, an entry is a field of the file: its type, its reader with the default, when a
//! change takes effect, and its meaning (see `table_settings`, and `kinds` for readers such as
//! `TIMEOUT`).

use std::time::Duration;

use http::uri::PathAndQuery;

use super::prelude::*;

table! {
    /// `[origins.NAME.health]`: health checks of the servers.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Health {
        /// Begins with `/`, and may have a query. Exactly one of `path` and `grpc` is present.
        path: Option<PathAndQuery> = PATH.optional(), Now,
            "Path that a check requests from each server. Required without grpc.";
        /// Name of a gRPC service; empty for the whole server.
        grpc: Option<Box<str>> = GRPC.optional(), Now,
            "Check servers of gRPC by its health protocol instead of path: the name of a service, or \"\" for the whole server.";
        interval: Duration = TIMEOUT.with_default("\"5s\""), Now,
            "Time between two checks of a server.";
        /// May be longer than the interval.
        timeout: Duration = TIMEOUT.with_default("\"1s\""), Now,
            "From connecting to the response head.";
        unhealthy_after: u32 = whole::<_, 1, U32>().with_default("3"), Now,
            "Failures in a row that take a server out.";
        healthy_after: u32 = whole::<_, 1, U32>().with_default("1"), Now,
            "Successes in a row that bring it back.";
    }
}

/// Path, perhaps with a query, as in the first line of a request.
const PATH: Kind<PathAndQuery> = Kind {
    form: Form::Regex("/[!-\"$-~]*"),
    read: |node| values::parse(node, "a path such as \"/healthz\"", parse_path),
    show: show_text,
};

/// Name of a gRPC service, or an empty text.
const GRPC: Kind<Box<str>> = Kind {
    form: Form::Regex("[0-9A-Za-z._/-]{0,255}"),
    read: |node| {
        const WHAT: &str =
            "the name of a service such as \"shop.Cart\", or \"\" for the whole server";
        let is_part = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
        let is_service = |name: &str| name.len() <= 255 && name.chars().all(is_part);
        values::text_if(node, WHAT, is_service).map(Box::from)
    },
    show: show_text,
};

/// Reads the fields of `[origins.NAME.health]`. `node`: the table, for messages.
pub(super) fn read(mut fields: Fields, node: Node) -> Health {
    let health = Health::read(&mut fields);
    let is_wrong = fields.is_wrong("path") || fields.is_wrong("grpc");
    match (&health.path, fields.peek("grpc")) {
        (None, None) if !is_wrong => node.report_problem(
            "the check has no path; add path = \"/healthz\", or grpc = \"\" for servers of gRPC",
        ),
        (Some(_), Some(grpc)) => grpc.report_problem("a check uses path or grpc; remove one"),
        _ => {}
    }
    fields.finish();
    health
}

/// Parses the path of a check.
fn parse_path(text: &str) -> Result<PathAndQuery, &'static str> {
    const FORM: &str =
        "a path begins with /, and is written as in a request: no blanks, quotes or #";
    let is_part = |b: u8| b.is_ascii_graphic() && b != b'#';
    if !text.starts_with('/') || !text.bytes().all(is_part) {
        return Err(FORM);
    }
    text.parse().map_err(|_| FORM)
}
