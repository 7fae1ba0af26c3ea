//! Meaning of Redis's errors.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use super::Error;
use super::bounded::NOT_REDIS;

/// Returns whether the keys of a call belong to several nodes of a cluster.
pub(super) fn is_across_nodes(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::CrossSlot)
}

/// Returns whether the server does not know a script by its hash.
pub(super) fn is_forgotten(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// Returns why a server cannot be used. A cluster mentions its nodes within the text.
pub(super) fn unreachable(error: &RedisError) -> Error {
    let text = error.to_string();
    match text.find(NOT_REDIS) {
        Some(at) => Error::NotRedis(text[at..].to_owned()),
        None if error.kind() == ErrorKind::Parse => Error::NotRedis(format!("{NOT_REDIS}{text}")),
        None => Error::Unreachable(text),
    }
}

/// Returns the error for a refused command: because of its key, or because of the whole Redis.
///
/// Before Redis 7 the error that a script met is somewhere within the text.
pub(super) fn refusal(error: &RedisError) -> Error {
    const NOT_ALLOWED: [&str; 5] = [
        "NOPERM",
        "unknown command",
        // Within a script.
        "Unknown Redis command",
        "can't run this command",
        "can't access at least one of the keys",
    ];
    const OUTAGES: [&str; 11] = [
        "READONLY",
        "LOADING",
        "BUSY ",
        "OOM",
        "MISCONF",
        "NOREPLICAS",
        "MASTERDOWN",
        "CLUSTERDOWN",
        "TRYAGAIN",
        "NOAUTH",
        "WRONGPASS",
    ];
    if error.is_io_error() || error.is_timeout() || error.kind() == ErrorKind::Parse {
        return unreachable(error);
    }
    let text = format!("{} {error}", error.code().unwrap_or_default());
    let says = |codes: &[&str]| codes.iter().any(|code| text.contains(code));
    // First, because an unknown command is reported with its arguments, which may contain any
    // words.
    if says(&NOT_ALLOWED) {
        Error::NotAllowed(error.to_string())
    } else if says(&OUTAGES) {
        Error::NotWritable(error.to_string())
    } else {
        Error::Refused(error.to_string())
    }
}
