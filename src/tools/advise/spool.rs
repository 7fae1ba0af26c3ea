//! A temporary file with the time and key of each request of a log.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

/// Size of the record of one request, in bytes.
const RECORD: usize = 16;
/// Size of one read, in bytes.
const AT_ONCE: usize = RECORD << 16;

/// Temporary file with the time and key of each request, so that a log can be replayed often.
///
/// The log itself is read only once, so it may be a pipe. The file has no name.
pub(super) struct Spool {
    file: BufWriter<File>,
    bytes: u64,
    /// Number of slots, known once all requests have been added.
    pub(super) slots: usize,
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
            bytes: 0,
            slots: 0,
        })
    }

    pub(super) fn put(&mut self, event: Event) -> io::Result<()> {
        let rest = u64::from(event.slot) << 1 | u64::from(event.is_first);
        let mut record = [0; RECORD];
        record[..8].copy_from_slice(&event.time.to_le_bytes());
        record[8..].copy_from_slice(&rest.to_le_bytes());
        self.file
            .write_all(&record)
            .map_err(|error| with_folder(&error))?;
        self.bytes += RECORD as u64;
        Ok(())
    }

    /// Flushes the buffer. Nothing may be added afterwards.
    ///
    /// `slots`: number of slots of all requests.
    pub(super) fn end(&mut self, slots: usize) -> io::Result<()> {
        self.slots = slots;
        self.file.flush().map_err(|error| with_folder(&error))
    }

    /// Returns the number of requests.
    pub(super) fn len(&self) -> u64 {
        self.bytes / RECORD as u64
    }

    /// Calls `event` for each request, in order.
    pub(super) fn each(&self, mut event: impl FnMut(Event)) -> io::Result<()> {
        let whole = usize::try_from(self.bytes).unwrap_or(AT_ONCE);
        let mut buffer = vec![0; whole.min(AT_ONCE)];
        let mut at = 0;
        while at < self.bytes {
            let left = usize::try_from(self.bytes - at).unwrap_or(AT_ONCE);
            let part = &mut buffer[..left.min(AT_ONCE)];
            self.file.get_ref().read_exact_at(part, at)?;
            at += part.len() as u64;
            for record in part.chunks_exact(RECORD) {
                let (time, rest) = record.split_at(8);
                let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
                let rest = number(rest);
                event(Event {
                    time: number(time),
                    slot: u32::try_from(rest >> 1).unwrap_or(u32::MAX),
                    is_first: rest & 1 != 0,
                });
            }
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
