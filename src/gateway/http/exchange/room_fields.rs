//! What a visitor of a waiting room keeps, and how far its request is.

/// How far a request is with the waiting room of its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entrance {
    /// It has not asked, or there is none.
    Unasked,
    /// It waits, because a zone or the store is asked.
    Waits,
    /// It has the answer.
    Passed,
}

/// The fields of a response that has a new session or ticket.
#[derive(Debug, Default)]
pub(super) struct RoomFields {
    pub(super) cookies: Vec<String>,
    /// For programs, which may keep no cookies: the name of a field, and its value.
    pub(super) own: Option<(&'static str, String)>,
}

impl RoomFields {
    pub(super) fn put(&self, put: &mut dyn FnMut(&[u8], &[u8])) {
        for cookie in &self.cookies {
            put(b"Set-Cookie", cookie.as_bytes());
        }
        if let Some((name, value)) = &self.own {
            put(name.as_bytes(), value.as_bytes());
        }
    }
}
