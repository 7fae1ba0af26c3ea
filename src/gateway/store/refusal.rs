//! Classes of Redis's errors: which of them is an outage, and which refuses one operation alone.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use super::Error;
use super::bounded_connection::NOT_REDIS;

/// Returns whether the keys of a call belong to several nodes of a cluster.
pub(super) fn is_for_several_nodes(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::CrossSlot)
}

/// Returns whether the server does not know the hash of a script.
pub(super) fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// Returns why a server cannot be used.
///
/// In a cluster, the reason may stand behind the names of nodes in the text.
pub(super) fn unreachable(error: &RedisError) -> Error {
    let text = error.to_string();
    match text.find(NOT_REDIS) {
        Some(start) => Error::NotRedis(text[start..].to_owned()),
        None if error.kind() == ErrorKind::Parse => Error::NotRedis(format!("{NOT_REDIS}{text}")),
        None => Error::Unreachable(text),
    }
}

/// Returns the class of the error for a refused command, by words in its text.
///
/// Before Redis 7, the error of a command in a script stands in the middle of the text.
pub(super) fn refusal(error: &RedisError) -> Error {
    const NOT_ALLOWED: [&str; 5] = [
        "NOPERM",
        "unknown command",
        // In a script.
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
    let contains_any = |words: &[&str]| words.iter().any(|word| text.contains(word));
    // Tested first, because an unknown command is quoted with its arguments, which may contain any
    // word.
    if contains_any(&NOT_ALLOWED) {
        Error::NotAllowed(error.to_string())
    } else if contains_any(&OUTAGES) {
        Error::NotWritable(error.to_string())
    } else {
        Error::Refused(error.to_string())
    }
}
