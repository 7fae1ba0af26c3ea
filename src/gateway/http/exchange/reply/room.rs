//! Responses to visitors of a waiting room.

use std::sync::Arc;

use config::{Media, PageContent};

use super::super::page::RoomValues;
use super::super::room_fields::RoomFields;
use super::{Body, MoreFields, Reply};

/// What a visitor gets who waits in the room of the origin.
#[derive(Debug)]
pub(super) enum RoomBody<'a> {
    /// A program: JSON, or plain text.
    Text { text: String, is_json: bool },
    /// A browser.
    Page {
        content: &'a Arc<PageContent>,
        values: RoomValues,
    },
}

impl<'a> RoomBody<'a> {
    pub(super) fn content(&self) -> Option<&'a Arc<PageContent>> {
        match self {
            Self::Text { .. } => None,
            Self::Page { content, .. } => Some(content),
        }
    }

    pub(super) fn values(&self) -> Option<&RoomValues> {
        match self {
            Self::Text { .. } => None,
            Self::Page { values, .. } => Some(values),
        }
    }

    pub(super) fn text(&self) -> (&str, Media) {
        match self {
            Self::Text {
                text,
                is_json: true,
            } => (text, Media::Json),
            Self::Text { text, .. } => (text, Media::Plain),
            Self::Page { .. } => ("", Media::Html),
        }
    }
}

impl<'a> Reply<'a> {
    /// The response to a program that waits in the room of the origin.
    pub(in crate::http::exchange) fn of_room(
        status: u16,
        text: String,
        is_json: bool,
        fields: RoomFields,
    ) -> Self {
        Self {
            more: MoreFields::Room(Box::new(fields)),
            body: Body::Room(Box::new(RoomBody::Text { text, is_json })),
            ..Self::plain(status, "")
        }
    }

    /// The response to a browser that waits in the room of the origin.
    pub(in crate::http::exchange) fn of_room_page(
        status: u16,
        content: &'a Arc<PageContent>,
        values: RoomValues,
        fields: RoomFields,
    ) -> Self {
        Self {
            more: MoreFields::Room(Box::new(fields)),
            body: Body::Room(Box::new(RoomBody::Page { content, values })),
            ..Self::plain(status, "")
        }
    }

    /// The response to a request that only asks whether its visitor is let in, and is.
    pub(in crate::http::exchange) fn of_new_session(fields: RoomFields) -> Self {
        Self {
            more: MoreFields::Room(Box::new(fields)),
            ..Self::plain(204, "")
        }
    }

    /// Puts what a visitor keeps: no route removes it, else nobody would ever be let in.
    pub(super) fn put_room(&self, put: &mut dyn FnMut(&[u8], &[u8])) {
        if let MoreFields::Room(fields) = &self.more {
            fields.put(put);
        }
    }
}
