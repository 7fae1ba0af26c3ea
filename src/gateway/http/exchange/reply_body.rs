//! Sends the body of a response that the gateway already has: its own, or a shared answer.

use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::page::PageBody;
use crate::collapse::AnswerBody;
use crate::http::downstream::{Aborted, ClientStream};
use crate::http::message::{Buffer, READ_SIZE, Then};

/// Body of a response that the gateway already has.
pub(super) enum ReplyBody {
    /// The gateway's own body.
    Own {
        piece: Buffer,
        /// Bytes after the piece. Boxed: few responses are so long.
        rest: Option<Box<PageBody>>,
    },
    /// Body of a shared answer.
    Shared(Box<SharedBody>),
}

impl ReplyBody {
    pub(super) fn new(piece: Buffer) -> Self {
        Self::Own { piece, rest: None }
    }

    /// Creates the body of a page. `piece` gets its first bytes.
    pub(super) fn of_page(mut piece: Buffer, mut page: PageBody) -> Self {
        let has_more = page.fill(&mut piece);
        let rest = has_more.then(|| Box::new(page));
        Self::Own { piece, rest }
    }

    /// Sends the body, and the end of the response.
    pub(super) fn poll_send(
        &mut self,
        client: &mut dyn ClientStream,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted>> {
        let (piece, rest) = match self {
            Self::Own { piece, rest } => (piece, rest),
            Self::Shared(body) => return body.poll_send(client, cx),
        };
        loop {
            let then = match rest {
                Some(_) => Then::More,
                None => Then::End(None),
            };
            let sent = ready!(client.poll_send(cx, piece, then));
            sent.map_err(|_| Aborted::ClientDisconnected)?;
            let Some(more) = rest else {
                return Poll::Ready(Ok(()));
            };
            piece.clear_for_body();
            if !more.fill(piece) {
                *rest = None;
            }
        }
    }
}

/// Body of a shared answer (one answer of the origin for several requests), as one client gets it.
pub(super) struct SharedBody {
    body: Arc<AnswerBody>,
    /// Range that the client has not accepted yet.
    left: Range<usize>,
    /// Number of bytes that were offered to the client, and not accepted yet; `None`: no offer.
    offered: Option<usize>,
}

impl SharedBody {
    /// Creates the body. `left`: range that the client gets.
    pub(super) fn new(body: &Arc<AnswerBody>, left: Range<usize>) -> Self {
        Self {
            body: Arc::clone(body),
            left,
            offered: None,
        }
    }

    /// Sends the body, and the end of the response.
    ///
    /// While the client accepts nothing, no buffer is held: a slow client holds only the shared
    /// body. If that body is dropped to free memory, the response ends incomplete.
    fn poll_send(
        &mut self,
        client: &mut dyn ClientStream,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted>> {
        // The head goes first: otherwise a slow client would keep the buffer that holds both.
        ready!(client.poll_flush(cx)).map_err(|_| Aborted::ClientDisconnected)?;
        loop {
            // The body has a known length, so its bytes are sent without framing. So the rest of an
            // offer that was not accepted in full can be offered as a new piece.
            let count = self.offered.unwrap_or(self.left.len().min(READ_SIZE));
            let end = self.left.start + count;
            let is_last = end == self.left.end;
            let mut piece = Buffer::for_body();
            let range = self.left.start..end;
            if self.body.read(range, |bytes| piece.put(bytes)).is_none() {
                return Poll::Ready(Err(Aborted::AnswerBroken));
            }
            let then = if is_last { Then::End(None) } else { Then::More };
            let sent = client.poll_send(cx, &mut piece, then);
            if sent.is_pending() {
                self.left.start = end - piece.len();
                self.offered = Some(piece.len());
            }
            ready!(sent).map_err(|_| Aborted::ClientDisconnected)?;
            (self.left.start, self.offered) = (end, None);
            if is_last {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
