//! Standard output and standard error, as sinks of logs.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};

/// A standard stream. A write waits until the reader takes it.
///
/// It takes no lock of the standard library: a write that waits for ever must not keep others from
/// the stream.
pub(super) struct Stream(File);

pub(super) fn stdout() -> io::Result<Stream> {
    Stream::of(io::stdout().as_fd())
}

pub(super) fn stderr() -> io::Result<Stream> {
    Stream::of(io::stderr().as_fd())
}

impl Stream {
    fn of(fd: impl AsFd) -> io::Result<Self> {
        let own = fd.as_fd().try_clone_to_owned()?;
        Ok(Self(File::from(own)))
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                // Another program that has the same pipe or terminal may have made it non-blocking.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], None)?;
                }
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
