use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;

use super::line::{Line, Recorded};
use crate::config::target;
use crate::config::{Variable, cut};

/// Maximum length of a key that is kept whole, in bytes.
///
/// A longer key is kept as its start and a hash, which bounds the memory of a million keys.
const LONGEST: usize = 128;
const KEPT: usize = 110;

/// `key`, or the short form that is kept of it.
pub(crate) fn remembered(key: &[u8]) -> Cow<'_, [u8]> {
    if key.len() <= LONGEST {
        return key.into();
    }
    // This hasher gives the same result in each run.
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let mut short = key[..KEPT].to_vec();
    // Writing to memory cannot fail.
    let _ = write!(short, "~{:016x}", hasher.finish());
    short.into()
}

/// Appends the value of `variable` for a recorded request to `key`.
///
/// IPv6 addresses are cut to `prefix` bits. Returns `false` if an access log does not contain the
/// variable.
pub(crate) fn add(
    key: &mut Vec<u8>,
    variable: &Variable,
    prefix: u8,
    line: &Line,
    recorded: &Recorded,
) -> bool {
    match variable {
        Variable::RemoteAddr => {
            let Some(client) = recorded.client else {
                return false;
            };
            // Writing to memory cannot fail.
            let _ = write!(key, "{}", cut(client, prefix));
        }
        Variable::RequestMethod => key.extend_from_slice(recorded.method.as_bytes()),
        Variable::RequestUri => key.extend_from_slice(recorded.target.as_bytes()),
        Variable::Uri => key.extend_from_slice(&target::path(line.path.as_bytes())),
        Variable::Header(name) if name == "referer" => {
            key.extend_from_slice(recorded.referer.as_bytes());
        }
        Variable::Header(name) if name == "user-agent" => {
            key.extend_from_slice(recorded.user_agent.as_bytes());
        }
        Variable::Arg(name) => {
            let query = recorded.target.split_once('?');
            let query = query.map_or("", |(_, query)| query);
            key.extend_from_slice(&target::argument(query.as_bytes(), name));
        }
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_key_is_remembered_by_its_begin_and_a_sum() {
        assert_eq!(*remembered(b"192.0.2.1"), *b"192.0.2.1");
        let long = |last: &str| format!("{}{last}", "x".repeat(100_000)).into_bytes();
        let (one, other) = (long("1"), long("2"));
        assert!(remembered(&one).len() <= LONGEST);
        assert!(remembered(&one).starts_with(b"xxx"));
        assert_ne!(remembered(&one), remembered(&other));
        assert_eq!(remembered(&one), remembered(&long("1")));
    }
}
