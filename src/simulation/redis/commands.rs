use std::collections::VecDeque;

use super::keys::Content;
use super::{Database, Reply};

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const READ_ONLY: &str = "READONLY You can't write against a read only replica.";
const WRITES: [&[u8]; 9] = [
    b"SET", b"UNLINK", b"DEL", b"LPUSH", b"RPUSH", b"LPOP", b"LSET", b"LREM", b"PEXPIRE",
];

impl Database {
    /// Runs a command that is no script.
    pub(super) fn run(&mut self, command: &[Vec<u8>]) -> Reply {
        self.keys.expire(self.now);
        let words: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let name = words[0].to_ascii_uppercase();
        if self.is_read_only && WRITES.contains(&name.as_slice()) {
            return Reply::error(READ_ONLY);
        }
        match (name.as_slice(), &words[1..]) {
            (b"PING", []) => Reply::Status("PONG"),
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
                let gone = keys.iter().filter(|key| self.keys.remove(key));
                number(gone.count())
            }
            (b"PEXPIRE", [key, millis]) => match whole(millis) {
                Some(millis) => {
                    let expires = self.in_millis(millis);
                    Reply::Number(self.keys.set_expires(key, expires).into())
                }
                None => Reply::error("ERR value is not an integer or out of range"),
            },
            (b"PTTL", [key]) => Reply::Number(match self.keys.expires(key) {
                Some(expires) => expires - self.in_millis(0),
                None if self.keys.get(key).is_some() => -1,
                None => -2,
            }),
            (_, [key, args @ ..]) => self.run_on_list(&name, key, args),
            _ => Reply::error("ERR unknown command"),
        }
    }

    fn run_on_list(&mut self, name: &[u8], key: &[u8], args: &[&[u8]]) -> Reply {
        let is_known = self.keys.get(key).is_some();
        let reply = self.keys.change(key, |list| match (name, args) {
            (b"LLEN", []) => number(list.len()),
            (b"LRANGE", [b"0", b"-1"]) => list_of(list.iter()),
            (b"LINDEX", [index]) => match at(list, index) {
                Some(index) => Reply::text(&list[index]),
                None => Reply::Nothing,
            },
            (b"LSET", [..]) if !is_known => Reply::error("ERR no such key"),
            (b"LSET", [index, value]) => match at(list, index) {
                Some(index) => {
                    list[index] = value.to_vec();
                    Reply::Status("OK")
                }
                None => Reply::error("ERR index out of range"),
            },
            (b"LPUSH", values) => {
                for value in values {
                    list.push_front(value.to_vec());
                }
                number(list.len())
            }
            (b"RPUSH", values) => {
                list.extend(values.iter().map(|it| it.to_vec()));
                number(list.len())
            }
            (b"LPOP", [_]) if !is_known => Reply::Nothing,
            (b"LPOP", [count]) => {
                let count = whole(count).and_then(|count| usize::try_from(count).ok());
                let count = count.unwrap_or(0).min(list.len());
                list_of(list.drain(..count).collect::<Vec<_>>().iter())
            }
            (b"LREM", [count, value]) => remove(list, whole(count).unwrap_or(0), value),
            _ => Reply::error("ERR unknown command"),
        });
        reply.unwrap_or_else(|| Reply::error(WRONG_TYPE))
    }

    fn get(&self, key: &[u8]) -> Reply {
        match self.keys.get(key) {
            None => Reply::Nothing,
            Some(Content::Text(text)) => Reply::text(text),
            Some(Content::List(_)) => Reply::error(WRONG_TYPE),
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
                    let millis = whole(millis).filter(|millis| *millis > 0);
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

    /// A time in milliseconds since the Unix epoch: so many from now on.
    fn in_millis(&self, millis: i64) -> i64 {
        i64::try_from(self.now / 1000)
            .unwrap_or(i64::MAX)
            .saturating_add(millis)
    }
}

fn whole(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn number(count: usize) -> Reply {
    Reply::Number(i64::try_from(count).unwrap_or(i64::MAX))
}

fn list_of<'a>(items: impl Iterator<Item = &'a Vec<u8>>) -> Reply {
    Reply::List(items.map(|item| Reply::text(item)).collect())
}

/// Which item an index means; those below zero count from the end.
fn at(list: &VecDeque<Vec<u8>>, index: &[u8]) -> Option<usize> {
    let (index, length) = (whole(index)?, i64::try_from(list.len()).ok()?);
    let index = if index < 0 { length + index } else { index };
    usize::try_from(index)
        .ok()
        .filter(|index| *index < list.len())
}

/// Removes so many items with this value; if the count is below zero, the last ones.
fn remove(list: &mut VecDeque<Vec<u8>>, count: i64, value: &[u8]) -> Reply {
    let before = list.len();
    let most = match usize::try_from(count.unsigned_abs()) {
        Ok(most @ 1..) => most,
        _ => usize::MAX,
    };
    let found = list.iter().enumerate().filter(|(_, item)| *item == value);
    let mut found: Vec<usize> = found.map(|(index, _)| index).collect();
    if count >= 0 {
        found.truncate(most);
    } else {
        found.drain(..found.len().saturating_sub(most));
    }
    for index in found.into_iter().rev() {
        list.remove(index);
    }
    number(before - list.len())
}
