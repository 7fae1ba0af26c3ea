use std::io::Write;

use config::target;
use config::{Variable, cut};

use super::line::{Line, Recorded};

/// Appends the value of `variable` for a recorded request to `key`.
///
/// IPv6 addresses are cut to `prefix` bits. Returns `false` if an access log does not contain the
/// variable.
pub fn add(
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
