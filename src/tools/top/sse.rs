//! Server-sent events, as the HTML standard defines them.

use thiserror::Error;

/// The longest event, in bytes: more than ten minutes of a gateway with many zones.
const MAX_SIZE: usize = 64 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) id: Option<String>,
    pub(super) data: String,
}

/// The error for an event that is too long.
#[derive(Debug, Error)]
#[error("an event of more than {MAX_SIZE} bytes")]
pub(super) struct TooLong;

/// Takes bytes as they come, and returns events as they end.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// A line that has not ended.
    line: Vec<u8>,
    event: Event,
    /// Set if the last byte was a carriage return. A line feed may follow that belongs to it.
    returned: bool,
}

impl Reader {
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, after) = rest.split_at(end);
            self.line.extend_from_slice(line);
            let again = self.returned && end == 0 && after[0] == b'\n';
            self.returned = after[0] == b'\r';
            rest = &after[1..];
            if !again {
                let line = std::mem::take(&mut self.line);
                events.extend(self.take(&String::from_utf8_lossy(&line)));
            }
        }
        if !rest.is_empty() {
            self.returned = false;
            self.line.extend_from_slice(rest);
        }
        match self.line.len() + self.event.data.len() {
            0..=MAX_SIZE => Ok(events),
            _ => Err(TooLong),
        }
    }

    fn take(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            let mut event = std::mem::take(&mut self.event);
            event.data.pop()?;
            return Some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "id" => self.event.id = Some(value.to_owned()),
            "data" => {
                self.event.data.push_str(value);
                self.event.data.push('\n');
            }
            // A comment keeps the connection alive. Other fields have no meaning here.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = ": hello\n\nevent: history\ndata: {}\n\nid: 7\r\nevent:sample\r\ndata: a\r\ndata:  b\r\n\r\nretry: 1\nevent: none\n\ndata\rdata: x\r\r";

    fn expected() -> Vec<Event> {
        let event = |name: &str, id: Option<&str>, data: &str| Event {
            name: name.to_owned(),
            id: id.map(str::to_owned),
            data: data.to_owned(),
        };
        vec![
            event("history", None, "{}"),
            event("sample", Some("7"), "a\n b"),
            event("", None, "\nx"),
        ]
    }

    #[test]
    fn events_end_with_an_empty_line() {
        assert_eq!(
            Reader::default().read(STREAM.as_bytes()).unwrap(),
            expected()
        );
    }

    #[test]
    fn wherever_the_stream_is_cut_it_says_the_same() {
        for size in 1..STREAM.len() {
            let mut reader = Reader::default();
            let parts = STREAM.as_bytes().chunks(size);
            let events: Vec<Event> = parts.flat_map(|part| reader.read(part).unwrap()).collect();
            assert_eq!(events, expected(), "{size}");
        }
    }

    #[test]
    fn an_event_without_end_is_an_error() {
        let mut reader = Reader::default();
        let part = vec![b'a'; 1 << 20];
        assert!((0..65).any(|_| reader.read(&part).is_err()));
    }
}
