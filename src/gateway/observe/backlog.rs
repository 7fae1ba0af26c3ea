//! Lines on their way to a writing thread, so that no worker waits for a disk or a pipe.
//!
//! The access log and the log on standard error use it. Lines beyond a number of bytes are dropped.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SendError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use crate::time::clock;

/// Minimum number of bytes that a line counts: also a short line takes about so much memory.
const MIN_LINE: usize = 256;

/// Lines on their way to the thread that writes them.
///
/// The thread ends when this and its clones are dropped and the last line is written.
#[derive(Clone, Debug)]
pub(super) struct Backlog {
    /// Channel to the writing thread.
    messages: Sender<Message>,
    /// Count of waiting lines.
    waiting: &'static PendingLines,
}

/// Target of the lines.
type Sink = Box<dyn Write + Send>;

/// Message to the writing thread, in order.
enum Message {
    Line(String),
    /// New target of all later lines.
    Sink(Sink),
}

/// Waiting lines of all backlogs of one kind of log, and the handlers for lost lines.
#[derive(Debug)]
pub(super) struct PendingLines {
    /// Name of the writing threads.
    name: &'static str,
    /// Maximum bytes that wait. Further lines are dropped.
    max_bytes: usize,
    /// Bytes that wait.
    bytes: AtomicUsize,
    /// Lines that wait.
    lines: AtomicUsize,
    outcome: Outcome,
}

/// Handlers for the results of writing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// A line was dropped, or could not be written.
    pub(super) lost: fn(),
    /// A write failed.
    pub(super) failed: fn(&io::Error),
    /// No line waits any more.
    pub(super) caught_up: fn(),
}

impl PendingLines {
    pub(super) const fn new(name: &'static str, max_bytes: usize, outcome: Outcome) -> Self {
        Self {
            name,
            max_bytes,
            bytes: AtomicUsize::new(0),
            lines: AtomicUsize::new(0),
            outcome,
        }
    }

    /// Counts a line, unless there is no room for it. Returns whether there is.
    fn add(&self, line: &str) -> bool {
        let size = line.len().max(MIN_LINE);
        // Adds first: other threads may add at the same time.
        let has_room = self.bytes.fetch_add(size, Ordering::Relaxed) + size <= self.max_bytes;
        if has_room {
            self.lines.fetch_add(1, Ordering::Relaxed);
        } else {
            self.bytes.fetch_sub(size, Ordering::Relaxed);
        }
        has_room
    }

    /// Subtracts a written or lost line from the count.
    fn remove(&self, line: &str) {
        let size = line.len().max(MIN_LINE);
        self.bytes.fetch_sub(size, Ordering::Relaxed);
        self.lines.fetch_sub(1, Ordering::Release);
    }

    /// Returns the number of lines that are not written yet.
    fn unwritten(&self) -> usize {
        self.lines.load(Ordering::Acquire)
    }

    /// Waits for all lines to be written, at most `limit`. Returns the number of unwritten lines.
    pub(super) async fn finish(&self, limit: Duration) -> usize {
        let deadline = clock::now() + limit;
        while self.unwritten() > 0 && clock::now() < deadline {
            tokio::time::sleep(POLL).await;
        }
        self.unwritten()
    }

    /// As [`finish`](Self::finish), but blocks the thread.
    pub(super) fn finish_blocking(&self, limit: Duration) -> usize {
        let deadline = clock::now() + limit;
        while self.unwritten() > 0 && clock::now() < deadline {
            thread::sleep(POLL);
        }
        self.unwritten()
    }
}

/// Interval of the checks for remaining lines.
const POLL: Duration = Duration::from_millis(1);

impl Backlog {
    /// Starts the thread that writes to `sink`.
    ///
    /// # Errors
    ///
    /// No thread can be started.
    pub(super) fn new(
        waiting: &'static PendingLines,
        sink: impl Write + Send + 'static,
    ) -> io::Result<Self> {
        let (messages, receiver) = channel();
        let thread = thread::Builder::new().name(waiting.name.to_owned());
        thread.spawn(move || write_all(&receiver, Box::new(sink), waiting))?;
        Ok(Self { messages, waiting })
    }

    /// Writes all later lines to `sink`, and closes the old sink before.
    pub(super) fn replace_sink(&self, sink: impl Write + Send + 'static) {
        // If the thread has panicked, no line is written. `push` counts the lost lines.
        let _ignored = self.messages.send(Message::Sink(Box::new(sink)));
    }

    /// Adds one line, or drops it if too many bytes wait.
    pub(super) fn push(&self, line: String) {
        if !self.waiting.add(&line) {
            return (self.waiting.outcome.lost)();
        }
        if let Err(SendError(Message::Line(unsent))) = self.messages.send(Message::Line(line)) {
            // The thread has panicked.
            self.waiting.remove(&unsent);
            (self.waiting.outcome.lost)();
        }
    }
}

/// Writes all lines until the channel is closed.
fn write_all(messages: &Receiver<Message>, mut sink: Sink, waiting: &PendingLines) {
    // Whether only a part of the previous line was written. The next line must not continue it.
    let mut is_torn = false;
    for message in messages {
        let line = match message {
            Message::Line(line) => line,
            Message::Sink(next) => {
                (sink, is_torn) = (next, false);
                continue;
            }
        };
        let end_of_torn_line = if is_torn {
            sink.write_all(b"\n")
        } else {
            Ok(())
        };
        // Bytes of the line that are not written yet.
        let mut rest = line.as_bytes();
        let written = end_of_torn_line.and_then(|()| {
            is_torn = false;
            write_rest(&mut sink, &mut rest)
        });
        is_torn |= written.is_err() && rest.len() < line.len();
        if let Err(error) = &written {
            (waiting.outcome.lost)();
            (waiting.outcome.failed)(error);
        }
        waiting.remove(&line);
        if written.is_ok() && waiting.unwritten() == 0 {
            (waiting.outcome.caught_up)();
        }
    }
}

/// Writes the rest of a line, however many writes it takes.
fn write_rest(sink: &mut impl Write, rest: &mut &[u8]) -> io::Result<()> {
    while !rest.is_empty() {
        match sink.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => *rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    sink.flush()
}

/// A standard stream. A write waits until the reader takes it.
///
/// It takes no lock of the standard library: a write that waits for ever must not keep other
/// threads from the stream.
pub(super) struct Stream(File);

/// Opens standard output.
pub(super) fn stdout() -> io::Result<Stream> {
    Stream::of(io::stdout().as_fd())
}

/// Opens standard error.
pub(super) fn stderr() -> io::Result<Stream> {
    Stream::of(io::stderr().as_fd())
}

impl Stream {
    /// Duplicates a descriptor, so that it is independent of the standard library's lock.
    fn of(fd: impl AsFd) -> io::Result<Self> {
        let own = fd.as_fd().try_clone_to_owned()?;
        Ok(Self(File::from(own)))
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                // Another program with the same pipe or terminal may have made it non-blocking.
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{SyncSender, sync_channel};
    use std::sync::{Arc, Mutex};

    use super::*;

    const BYTES: usize = 1 << 20;

    /// A disk that takes a line only when the test receives it.
    struct Slow(SyncSender<usize>);

    impl Write for Slow {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.send(line.len()).map_err(io::Error::other)?;
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Creates the count of waiting lines of one test.
    fn create_count() -> &'static PendingLines {
        let outcome = Outcome {
            lost: || {},
            failed: |_| {},
            caught_up: || {},
        };
        Box::leak(Box::new(PendingLines::new("log", BYTES, outcome)))
    }

    fn wait_until_written(waiting: &PendingLines) {
        while waiting.bytes.load(Ordering::Relaxed) > 0 || waiting.unwritten() > 0 {
            thread::yield_now();
        }
    }

    #[test]
    fn lines_wait_up_to_a_number_of_bytes_and_no_waiting_line_is_lost() {
        for length in [1, 100, 128 * 1024] {
            let (sender, disk) = sync_channel(0);
            let backlog = Backlog::new(create_count(), Slow(sender)).unwrap();
            let fit = BYTES / length.max(MIN_LINE);
            let line = "x".repeat(length);
            for _ in 0..fit + 100 {
                backlog.push(line.clone());
            }
            assert!(backlog.waiting.bytes.load(Ordering::Relaxed) <= BYTES);
            for nth in 0..fit {
                assert_eq!(disk.recv(), Ok(length), "line {nth}");
            }
            // The last line is subtracted from the count just after the disk has it.
            wait_until_written(backlog.waiting);
            backlog.push("more\n".to_owned());
            assert_eq!(disk.recv(), Ok(5), "there is room again");
        }
    }

    /// A disk with room for some bytes, and its content.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<(usize, Vec<u8>)>>);

    impl Disk {
        fn set_room(&self, room: usize) {
            self.0.lock().unwrap().0 = room;
        }

        fn content(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().1.clone()).unwrap()
        }
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (room, content) = &mut *self.0.lock().unwrap();
            let count = bytes.len().min(*room);
            if count == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            *room -= count;
            content.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_that_was_cut_off_by_a_full_disk_does_not_run_into_the_next() {
        let (disk, waiting) = (Disk::default(), create_count());
        let backlog = Backlog::new(waiting, disk.clone()).unwrap();
        for (room, lines) in [
            (9, &["one\n", "second\n", "third\n"][..]),
            (100, &["fourth\n", "fifth\n"]),
        ] {
            disk.set_room(room);
            for line in lines {
                backlog.push((*line).to_owned());
                wait_until_written(waiting);
            }
        }
        assert_eq!(disk.content(), "one\nsecon\nfourth\nfifth\n");
    }

    #[test]
    fn lines_go_to_the_sink_that_was_there_when_they_were_pushed() {
        let (old, new, waiting) = (Disk::default(), Disk::default(), create_count());
        // The last line for the old disk is cut off. That must not affect the new disk.
        old.set_room(7);
        new.set_room(100);
        let backlog = Backlog::new(waiting, old.clone()).unwrap();
        backlog.push("first\n".to_owned());
        backlog.push("second\n".to_owned());
        backlog.replace_sink(new.clone());
        backlog.push("third\n".to_owned());
        wait_until_written(waiting);
        assert_eq!((&*old.content(), &*new.content()), ("first\ns", "third\n"));
    }
}
