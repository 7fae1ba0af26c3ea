//! A temporary file with the time and key of each request of a log.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

/// Size of one read or write, in bytes.
const AT_ONCE: usize = 1 << 20;

/// Temporary file with the time and key of each request, so that a log can be replayed often.
///
/// The log itself is read only once, so it may be a pipe. The file has no name.
pub(super) struct Spool {
    file: BufWriter<File>,
    /// Number of requests.
    pub(super) count: u64,
}

/// A request, as replays need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Time in nanoseconds, never before that of the previous request.
    pub(super) time: u64,
    /// The slot of the key. Another key may have used the slot before.
    pub(super) slot: u32,
    /// Whether it is the first request of its key in this slot.
    pub(super) is_first: bool,
}

impl Spool {
    /// Creates the temporary file.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no room for temporary files.
    pub(super) fn new() -> io::Result<Self> {
        let file = tempfile::tempfile().map_err(|error| with_folder(&error))?;
        Ok(Self {
            file: BufWriter::with_capacity(AT_ONCE, file),
            count: 0,
        })
    }

    pub(super) fn put(&mut self, event: Event) -> io::Result<()> {
        self.count += 1;
        let rest = u64::from(event.slot) << 1 | u64::from(event.is_first);
        let mut put = |number: u64| self.file.write_all(&number.to_le_bytes());
        let written = put(event.time).and_then(|()| put(rest));
        written.map_err(|error| with_folder(&error))
    }

    /// Flushes the buffer. Nothing may be added afterwards.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| with_folder(&error))
    }

    /// Calls `event` for each request, in order.
    pub(super) fn each(&self, mut event: impl FnMut(Event)) -> io::Result<()> {
        let mut file = self.file.get_ref();
        file.rewind()?;
        let mut file = BufReader::with_capacity(AT_ONCE, file);
        let mut number = || {
            let mut bytes = [0; 8];
            file.read_exact(&mut bytes)?;
            io::Result::Ok(u64::from_le_bytes(bytes))
        };
        for _ in 0..self.count {
            let (time, rest) = (number()?, number()?);
            event(Event {
                time,
                slot: u32::try_from(rest >> 1).unwrap_or(u32::MAX),
                is_first: rest & 1 != 0,
            });
        }
        Ok(())
    }
}

/// Adds to an error that it concerns a temporary file, and names its folder.
fn with_folder(error: &io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    let message = format!("a temporary file in {}: {error}", folder.display());
    io::Error::new(error.kind(), message)
}
