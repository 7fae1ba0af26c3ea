//! The commands of the fake Redis, without scripts.

use super::keys::Content;
use super::{Database, Reply};

/// Error of a command for a key of another type.
const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
/// Error of a write to a replica.
const READ_ONLY: &str = "READONLY You can't write against a read only replica.";
/// Commands that write.
const WRITES: [&[u8]; 6] = [b"SET", b"UNLINK", b"DEL", b"HSET", b"HDEL", b"PEXPIRE"];

impl Database {
    /// Runs a command that is not a script.
    pub(super) fn run(&mut self, command: &[Vec<u8>]) -> Reply {
        self.keys.expire(self.now);
        let words: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let name = words[0].to_ascii_uppercase();
        if self.is_read_only && WRITES.contains(&name.as_slice()) {
            return Reply::error(READ_ONLY);
        }
        match (name.as_slice(), &words[1..]) {
            (b"PING", []) => Reply::Status("PONG"),
            (b"INFO", [b"replication"]) => {
                let id = format!("role:master\r\nmaster_replid:{:040x}\r\n", self.replication);
                Reply::text(id.as_bytes())
            }
            (b"TIME", []) => {
                let (seconds, micros) = (self.now / 1_000_000, self.now % 1_000_000);
                let text = |number: u64| Reply::text(number.to_string().as_bytes());
                Reply::List(vec![text(seconds), text(micros)])
            }
            (b"GET", [key]) => self.get(key),
            (b"MGET", keys) => {
                let got = keys.iter().map(|key| match self.get(key) {
                    Reply::Error(_) => Reply::Nothing,
                    got => got,
                });
                Reply::List(got.collect())
            }
            (b"SET", [key, value, options @ ..]) => self.set(key, value, options),
            (b"UNLINK" | b"DEL", keys) => {
                let removed = keys.iter().filter(|key| self.keys.remove(key));
                to_number(removed.count())
            }
            (b"PEXPIRE", [key, millis]) => match parse_whole(millis) {
                Some(millis) => {
                    let expires = self.in_millis(millis);
                    Reply::Number(self.keys.set_expires(key, expires).into())
                }
                None => Reply::error("ERR value is not an integer or out of range"),
            },
            // As in Redis: -1 for a key that does not expire, -2 for a missing key.
            (b"PTTL", [key]) => Reply::Number(match self.keys.expires(key) {
                // `in_millis(0)` is the current time.
                Some(expires) => expires - self.in_millis(0),
                None if self.keys.get(key).is_some() => -1,
                None => -2,
            }),
            (_, [key, args @ ..]) => self.run_on_hash(&name, key, args),
            _ => Reply::error("ERR unknown command"),
        }
    }

    /// Runs a command for a hash.
    fn run_on_hash(&mut self, name: &[u8], key: &[u8], args: &[&[u8]]) -> Reply {
        if name == b"HSET" && (args.is_empty() || !args.len().is_multiple_of(2)) {
            return Reply::error("ERR wrong number of arguments for 'hset' command");
        }
        let reply = self.keys.change(key, |hash| match (name, args) {
            (b"HGET", [field]) => hash
                .get(*field)
                .map_or(Reply::Nothing, |value| Reply::text(value)),
            (b"HMGET", fields) if !fields.is_empty() => {
                let values = fields.iter().map(|field| hash.get(*field));
                let text = |value: &Vec<u8>| Reply::text(value);
                let replies = values.map(|value| value.map_or(Reply::Nothing, text));
                Reply::List(replies.collect())
            }
            (b"HSET", pairs) => {
                let before = hash.len();
                for pair in pairs.chunks_exact(2) {
                    hash.insert(pair[0].to_vec(), pair[1].to_vec());
                }
                to_number(hash.len() - before)
            }
            (b"HDEL", [_, ..]) => {
                let removed = args.iter().filter(|field| hash.remove(**field).is_some());
                to_number(removed.count())
            }
            (b"HLEN", []) => to_number(hash.len()),
            _ => Reply::error("ERR unknown command"),
        });
        reply.unwrap_or_else(|| Reply::error(WRONG_TYPE))
    }

    fn get(&self, key: &[u8]) -> Reply {
        match self.keys.get(key) {
            None => Reply::Nothing,
            Some(Content::Text(text)) => Reply::text(text),
            Some(Content::Hash(_)) => Reply::error(WRONG_TYPE),
        }
    }

    fn set(&mut self, key: &[u8], value: &[u8], mut options: &[&[u8]]) -> Reply {
        let mut expires = None;
        loop {
            options = match options {
                [] => break,
                [b"NX", rest @ ..] => {
                    if self.keys.get(key).is_some() {
                        return Reply::Nothing;
                    }
                    rest
                }
                [b"PX", millis, rest @ ..] => {
                    let millis = parse_whole(millis).filter(|millis| *millis > 0);
                    let Some(millis) = millis else {
                        return Reply::error("ERR invalid expire time in 'set' command");
                    };
                    expires = Some(self.in_millis(millis));
                    rest
                }
                _ => return Reply::error("ERR syntax error"),
            };
        }
        self.keys.set(key, Content::Text(value.to_vec()), expires);
        Reply::Status("OK")
    }

    /// Returns the time `millis` from now, in milliseconds since the Unix epoch.
    fn in_millis(&self, millis: i64) -> i64 {
        i64::try_from(self.now / 1000)
            .unwrap_or(i64::MAX)
            .saturating_add(millis)
    }
}

fn parse_whole(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn to_number(count: usize) -> Reply {
    Reply::Number(i64::try_from(count).unwrap_or(i64::MAX))
}
