use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::body::{BodySize, MessageBody};
use bytes::Bytes;

use super::served::Served;
use crate::origin::ToClient;

/// An answer's body: the gateway's own words, or the origin's as they come.
pub(super) enum Body {
    Text(Bytes),
    Origin(ToClient),
}

impl Body {
    pub(super) fn text(text: String) -> Self {
        Self::Text(text.into())
    }
}

/// An answer's body that takes note of what was sent of it.
pub struct Answer {
    body: Body,
    served: Served,
}

impl Answer {
    pub(super) fn new(body: Body, served: Served) -> Self {
        Self { body, served }
    }
}

impl MessageBody for Answer {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        match &self.body {
            Body::Text(text) => BodySize::Sized(text.len() as u64),
            Body::Origin(body) => body.size(),
        }
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let piece = match &mut self.body {
            Body::Text(text) if text.is_empty() => None,
            Body::Text(text) => Some(Ok(std::mem::take(text))),
            Body::Origin(body) => ready!(body.poll_piece(cx)),
        };
        if let Some(Ok(piece)) = &piece {
            self.served.sent(piece.len());
        }
        Poll::Ready(piece.map(|piece| piece.map_err(Into::into)))
    }
}
