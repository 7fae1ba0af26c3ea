//! Reads regular files of limited size.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Reads a regular file of at most `most` bytes.
///
/// Other kinds of files are refused: `/dev/zero` never ends, and opening a FIFO blocks until
/// somebody writes.
///
/// # Errors
///
/// Returns an error if the file cannot be read, is not a regular file or is larger.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    bounded(file, most)
}

/// Reads to the end of a file of any kind, at most `most` bytes.
///
/// # Errors
///
/// Returns an error if the file cannot be read or is larger.
pub(super) fn bounded(file: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    file.take(most + 1).read_to_end(&mut text)?;
    if text.len() as u64 > most {
        let most = super::show_size(most);
        return Err(io::Error::other(format!("it is larger than {most}")));
    }
    Ok(text)
}
