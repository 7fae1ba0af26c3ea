//! A temporary file with the time and key of each request of a log.
//!
//! A key is stored as its slot, which is its number in `keys`.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

use limit::Moment;

/// Number of bytes that are read or written at once.
const BUFFER_SIZE: usize = 1 << 20;

/// Temporary file with the time and key of each request, to replay them several times.
///
/// The log itself is read only once, because it may be a pipe. The temporary file has no name.
pub(super) struct Spool {
    file: BufWriter<File>,
    /// Number of requests.
    pub(super) count: u64,
    /// Time of the first request in nanoseconds; `None` without requests.
    first: Option<u64>,
    /// Time of the last request, in nanoseconds.
    last: u64,
    /// Whether the time of every request is a whole second.
    pub(super) is_coarse: bool,
}

/// A request in the temporary file.
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
        let file = tempfile::tempfile().map_err(|error| name_folder(&error))?;
        Ok(Self {
            file: BufWriter::with_capacity(BUFFER_SIZE, file),
            count: 0,
            first: None,
            last: 0,
            is_coarse: true,
        })
    }

    /// Adds a request. Requests must be added in order of time.
    pub(super) fn put(&mut self, event: Event) -> io::Result<()> {
        self.count += 1;
        self.is_coarse &= event.time.is_multiple_of(1_000_000_000);
        self.first.get_or_insert(event.time);
        self.last = event.time;
        // The lowest bit is `is_first`, the others are the slot.
        let slot = u64::from(event.slot) << 1 | u64::from(event.is_first);
        let mut write_number = |number: u64| self.file.write_all(&number.to_le_bytes());
        let written = write_number(event.time).and_then(|()| write_number(slot));
        written.map_err(|error| name_folder(&error))
    }

    /// Returns the time of the first and of the last request.
    pub(super) fn span(&self) -> (Moment, Moment) {
        let first = self.first.unwrap_or_default();
        (Moment::from_nanos(first), Moment::from_nanos(self.last))
    }

    /// Flushes the buffer. Nothing may be added afterwards.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| name_folder(&error))
    }

    /// Calls `visit` for each request, in order.
    pub(super) fn each(&self, mut visit: impl FnMut(Event)) -> io::Result<()> {
        let mut file = self.file.get_ref();
        file.rewind()?;
        let mut file = BufReader::with_capacity(BUFFER_SIZE, file);
        let mut read_number = || {
            let mut bytes = [0; 8];
            file.read_exact(&mut bytes)?;
            io::Result::Ok(u64::from_le_bytes(bytes))
        };
        for _ in 0..self.count {
            let (time, slot) = (read_number()?, read_number()?);
            visit(Event {
                time,
                slot: u32::try_from(slot >> 1).unwrap_or(u32::MAX),
                is_first: slot & 1 != 0,
            });
        }
        Ok(())
    }
}

/// Adds to the text of an error that it concerns a temporary file, and its folder.
fn name_folder(error: &io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    let message = format!("a temporary file in {}: {error}", folder.display());
    io::Error::new(error.kind(), message)
}
