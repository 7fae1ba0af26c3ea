use std::io::Write;

use super::line::{Line, Recorded};
use crate::config::{Variable, cut};
use crate::target;

/// Appends to `key` what `variable` is of a recorded request, IPv6 addresses cut to `prefix` bits; `false` where an access
/// log does not tell.
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
        Variable::Uri => key.extend_from_slice(&target::path(&line.path)),
        Variable::Header(name) if name == "referer" => {
            key.extend_from_slice(recorded.referer.as_bytes());
        }
        Variable::Header(name) if name == "user-agent" => {
            key.extend_from_slice(recorded.user_agent.as_bytes());
        }
        Variable::Arg(name) => {
            let query = recorded.target.split_once('?');
            let query = query.map_or("", |(_, query)| query);
            key.extend_from_slice(target::argument(query, name));
        }
        _ => return false,
    }
    true
}
