//! What a visitor of a waiting room keeps.

use crate::http::message::Put;

/// The fields of a response that has a new session or ticket.
#[derive(Debug, Default)]
pub(super) struct RoomFields {
    pub(super) cookies: Vec<String>,
    /// For programs, which may keep no cookies: the name of a field, and its value.
    pub(super) own: Option<(&'static str, String)>,
}

impl RoomFields {
    pub(super) fn put(&self, put: Put<'_>) {
        for cookie in &self.cookies {
            put(b"Set-Cookie", cookie.as_bytes());
        }
        if let Some((name, value)) = &self.own {
            put(name.as_bytes(), value.as_bytes());
        }
    }
}
