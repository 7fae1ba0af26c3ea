//! Reads files of limited size, and refuses devices and pipes.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Reads a regular file of at most `max_bytes`.
///
/// Other kinds of files are refused: `/dev/zero` never ends, and opening a FIFO blocks until
/// somebody writes.
///
/// # Errors
///
/// Returns an error if the file cannot be read, is not a regular file or is larger.
pub fn read_regular(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    // `NONBLOCK`: opening a FIFO returns at once, and the check of its kind refuses it.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    read_at_most(file, max_bytes)
}

/// Reads a file of any kind to its end, at most `max_bytes`.
///
/// # Errors
///
/// Returns an error if the file cannot be read or is larger.
pub(super) fn read_at_most(file: impl Read, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    // One byte more shows that the file is larger.
    file.take(max_bytes + 1).read_to_end(&mut content)?;
    if content.len() as u64 > max_bytes {
        let max_size = super::show_size(max_bytes);
        return Err(io::Error::other(format!("it is larger than {max_size}")));
    }
    Ok(content)
}
