//! Forwards bytes in both directions of a connection that has switched protocols (after a 101).

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::http::downstream::Tunnel;
use crate::http::message::Buffer;
use crate::time::deadline::Deadline;

/// Time that one side gets to end after the other has ended.
const MAX_HALF_CLOSED: Duration = Duration::from_secs(30);

/// One direction of a tunnel. A buffer is held only while there are bytes in it.
#[derive(Default)]
struct Direction {
    /// Bytes that were read and not written yet.
    buffer: Option<Buffer>,
    /// Whether the sender has ended its direction.
    has_ended: bool,
    /// Whether the end was forwarded to the receiver.
    is_shut: bool,
    /// Number of forwarded bytes.
    bytes: u64,
}

impl Direction {
    fn new(first: Option<Buffer>) -> Self {
        Self {
            buffer: first.filter(|first| !first.is_empty()),
            ..Self::default()
        }
    }

    /// Moves all available bytes.
    ///
    /// Ready when the end has arrived and was forwarded. Sets `moved` if any bytes moved.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        mut from: &mut dyn Tunnel,
        mut to: &mut dyn Tunnel,
        moved: &mut bool,
    ) -> Poll<io::Result<()>> {
        loop {
            if let Some(buffer) = &mut self.buffer {
                let before = buffer.len();
                let drained = buffer.poll_drain(cx, &mut to)?;
                let count = before - buffer.len();
                self.bytes += count as u64;
                *moved |= count > 0;
                ready!(drained);
                self.buffer = None;
            }
            if self.has_ended {
                ready!(Pin::new(&mut *to).poll_flush(cx))?;
                if !self.is_shut {
                    ready!(Pin::new(&mut *to).poll_shutdown(cx))?;
                    self.is_shut = true;
                }
                return Poll::Ready(Ok(()));
            }
            let mut buffer = Buffer::take();
            match buffer.poll_fill(cx, &mut from, usize::MAX)? {
                Poll::Pending => {
                    ready!(Pin::new(&mut *to).poll_flush(cx))?;
                    return Poll::Pending;
                }
                Poll::Ready(0) => {
                    self.has_ended = true;
                    *moved = true;
                }
                Poll::Ready(_) => {
                    *moved = true;
                    self.buffer = Some(buffer);
                }
            }
        }
    }
}

/// Forwards bytes in both directions until the tunnel ends. Returns the number sent to the client.
///
/// The tunnel ends when both sides have ended, when one fails, or when both send nothing for
/// `silence`. If only one side has ended, the tunnel ends 30 s later.
///
/// `to_client`, `to_origin`: bytes that were already received from the other side.
pub(super) async fn carry(
    client: &mut dyn Tunnel,
    origin: &mut dyn Tunnel,
    to_client: Option<Buffer>,
    to_origin: Option<Buffer>,
    silence: Duration,
) -> u64 {
    let (mut down, mut up) = (Direction::new(to_client), Direction::new(to_origin));
    let (mut silent, mut half_closed) = (Deadline::default(), Deadline::default());
    poll_fn(|cx| {
        let mut moved = false;
        let down_ended = down.poll(cx, origin, client, &mut moved);
        let up_ended = up.poll(cx, client, origin, &mut moved);
        match (down_ended, up_ended) {
            (Poll::Ready(Err(_)), _)
            | (_, Poll::Ready(Err(_)))
            | (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => return Poll::Ready(()),
            (Poll::Pending, Poll::Pending) => {}
            _ => half_closed.start(MAX_HALF_CLOSED),
        }
        if moved {
            silent.stop();
        }
        // Has no effect while the deadline runs, so the time counts from the last bytes.
        silent.start(silence);
        if half_closed.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        silent.poll(cx)
    })
    .await;
    down.bytes
}
