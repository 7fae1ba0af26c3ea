use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};

use crate::observe::metrics::count_dropped_line;
use crate::observe::throttle::Throttle;
use crate::time::clock;

/// Bytes that may wait for the disk, in all logs of the process. Further lines are dropped and
/// counted.
///
/// After a reload the old log is open until its last request has ended. A slow disk must not slow requests down, nor fill the memory.
const BYTES: usize = 16 * 1024 * 1024;
/// A line counts for at least this much: about what a waiting line takes besides its text.
const LEAST: usize = 256;
/// With this many lines of `LEAST` bytes the backlog is full.
const LINES: usize = BYTES / LEAST;

/// The lines on their way to the thread that writes them.
///
/// Dropping it writes the lines that still wait.
pub(super) struct Backlog {
    waiting: &'static AtomicUsize,
    writer: NonBlocking,
    _until_written: WorkerGuard,
}

impl Backlog {
    /// Starts the thread that writes to `sink`.
    pub(super) fn new(sink: impl Write + Send + 'static) -> Self {
        static WAITING: AtomicUsize = AtomicUsize::new(0);
        Self::counted_in(&WAITING, sink)
    }

    fn counted_in(waiting: &'static AtomicUsize, sink: impl Write + Send + 'static) -> Self {
        let sink = Counted {
            sink,
            waiting,
            failed: Throttle::default(),
        };
        let builder = NonBlockingBuilder::default()
            .buffered_lines_limit(LINES)
            .lossy(true);
        let (writer, until_written) = builder.thread_name("access log").finish(sink);
        Self {
            waiting,
            writer,
            _until_written: until_written,
        }
    }

    /// Hands one line over, or drops it if too many bytes wait.
    pub(super) fn push(&self, line: &str) {
        let size = size(line.as_bytes());
        if self.waiting.fetch_add(size, Ordering::Relaxed) + size > BYTES {
            self.waiting.fetch_sub(size, Ordering::Relaxed);
            return count_dropped_line();
        }
        // Handing over does not fail: as many lines as fit have less than `BYTES` bytes.
        let _handed_over = self.writer.clone().write_all(line.as_bytes());
    }
}

/// The file, as the thread that writes it sees it.
struct Counted<W> {
    sink: W,
    waiting: &'static AtomicUsize,
    failed: Throttle,
}

impl<W: Write> Write for Counted<W> {
    /// Takes one whole line, as it was pushed.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let written = self.sink.write_all(line);
        self.waiting.fetch_sub(size(line), Ordering::Relaxed);
        if let Err(error) = written {
            count_dropped_line();
            if let Some(hidden) = self.failed.show(clock::now()) {
                tracing::error!(%error, hidden, "the access log cannot be written; lines are lost");
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

fn size(line: &[u8]) -> usize {
    line.len().max(LEAST)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use super::*;

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

    fn slow() -> (Backlog, Receiver<usize>) {
        let (sender, receiver) = sync_channel(0);
        let waiting = Box::leak(Box::default());
        (Backlog::counted_in(waiting, Slow(sender)), receiver)
    }

    #[test]
    fn lines_wait_up_to_a_number_of_bytes_and_none_of_those_is_lost() {
        for length in [1, 100, 128 * 1024] {
            let (backlog, disk) = slow();
            let fit = BYTES / length.max(LEAST);
            let line = "x".repeat(length);
            for _ in 0..fit + 100 {
                backlog.push(&line);
            }
            assert!(backlog.waiting.load(Ordering::Relaxed) <= BYTES);
            for nth in 0..fit {
                assert_eq!(disk.recv(), Ok(length), "line {nth}");
            }
            // The last line is taken off the count just after the disk has it.
            while backlog.waiting.load(Ordering::Relaxed) > 0 {
                std::thread::yield_now();
            }
            backlog.push("more\n");
            assert_eq!(disk.recv(), Ok(5), "there is room again");
        }
    }
}
