//! The replies of the fake Redis.

use redis::{RedisResult, Value, parse_redis_value};

/// A reply of Redis.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::simulation) enum Reply {
    Status(&'static str),
    Text(Vec<u8>),
    Nothing,
    Number(i64),
    List(Vec<Reply>),
    Error(String),
}

impl Reply {
    pub(super) fn error(text: &str) -> Self {
        Self::Error(text.to_owned())
    }

    pub(super) fn text(text: &[u8]) -> Self {
        Self::Text(text.to_vec())
    }

    /// Returns whether the command failed because its script is unknown.
    pub(in crate::simulation) fn is_unknown_script(&self) -> bool {
        matches!(self, Self::Error(error) if error.starts_with("NOSCRIPT"))
    }

    /// Writes the reply in the wire format (RESP2).
    fn write(&self, wire: &mut Vec<u8>) {
        let text = match self {
            Self::Status(status) => format!("+{status}\r\n"),
            Self::Number(number) => format!(":{number}\r\n"),
            Self::Nothing => "$-1\r\n".to_owned(),
            Self::Error(error) => format!("-{error}\r\n"),
            Self::Text(text) => format!("${}\r\n", text.len()),
            Self::List(replies) => format!("*{}\r\n", replies.len()),
        };
        wire.extend_from_slice(text.as_bytes());
        match self {
            Self::Text(text) => {
                wire.extend_from_slice(text);
                wire.extend_from_slice(b"\r\n");
            }
            Self::List(replies) => replies.iter().for_each(|reply| reply.write(wire)),
            _ => {}
        }
    }

    /// Returns the reply as the client parses it.
    pub(in crate::simulation) fn read(&self) -> RedisResult<Value> {
        let mut wire = Vec::new();
        self.write(&mut wire);
        parse_redis_value(&wire)?.extract_error()
    }
}
