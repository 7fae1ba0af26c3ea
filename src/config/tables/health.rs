//! `[origins.NAME.health]`.

use std::time::Duration;

use http::uri::PathAndQuery;

use super::prelude::*;

table! {
    /// `[origins.NAME.health]`: how servers are probed.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Health {
        /// It begins with `/`, and may have a query.
        path: PathAndQuery = PATH.required("\"/healthz\""), Now,
            "What each server is asked for.";
        interval: Duration = TIMEOUT.or("\"5s\""), Now,
            "Time between two checks of a server.";
        /// It may be longer than the interval.
        timeout: Duration = TIMEOUT.or("\"1s\""), Now,
            "From connecting to the response head.";
        unhealthy_after: u32 = whole::<_, 1, U32>().or("3"), Now,
            "Failures in a row that take a server out.";
        healthy_after: u32 = whole::<_, 1, U32>().or("1"), Now,
            "Successes in a row that bring it back.";
    }
}

const PATH: Kind<PathAndQuery> = kind(
    Form::Like("/[!-\"$-~]*"),
    |node| values::parsed(node, "a path such as \"/healthz\"", health_path),
    |it| shown(it.as_str()),
);

fn health_path(text: &str) -> Result<PathAndQuery, &'static str> {
    const FORM: &str =
        "a path begins with /, and is written as in a request: no blanks, quotes or #";
    let fits = |b: u8| b.is_ascii_graphic() && b != b'#';
    if !text.starts_with('/') || !text.bytes().all(fits) {
        return Err(FORM);
    }
    text.parse().map_err(|_| FORM)
}
