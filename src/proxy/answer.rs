use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::served::Served;
use crate::origin::ToClient;

/// An answer's body: the gateway's own words, or the origin's as they come.
pub(super) enum Body {
    Text(Bytes),
    Origin(ToClient),
    /// None, of a length that is told all the same: a 304 has that of the body which it saves. hyper writes a length for
    /// a status without a body only where it does not know that there is none.
    Saved,
}

impl Body {
    pub(super) fn text(text: String) -> Self {
        Self::Text(text.into())
    }
}

/// An answer's body that takes note of what was sent of it.
pub struct Answer {
    body: Body,
    served: Option<Box<Served>>,
}

impl Answer {
    pub(super) fn new(body: Body, served: Box<Served>) -> Self {
        Self {
            body,
            served: Some(served),
        }
    }

    /// The empty body of an answer after which a tunnel goes on, which sees to the rest.
    pub(super) fn of_tunnel() -> Self {
        Self {
            body: Body::Text(Bytes::new()),
            served: None,
        }
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let piece = match &mut self.body {
            Body::Text(text) if text.is_empty() => None,
            Body::Text(text) => Some(Ok(std::mem::take(text))),
            Body::Origin(body) => ready!(body.poll_piece(cx)),
            Body::Saved => None,
        };
        if let (Some(Ok(piece)), Some(served)) = (&piece, &mut self.served) {
            served.sent(piece.len() as u64);
        }
        Poll::Ready(piece.map(|piece| piece.map(Frame::data).map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            Body::Text(text) => text.is_empty(),
            Body::Origin(body) => body.is_over(),
            Body::Saved => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Body::Text(text) => SizeHint::with_exact(text.len() as u64),
            Body::Origin(body) => body.size(),
            Body::Saved => SizeHint::default(),
        }
    }
}
