//! HTTP version of a message.

/// HTTP version of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
    /// HTTP/2
    Http2,
}

impl Version {
    /// Returns the name for logs, such as `HTTP/1.1`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2.0",
        }
    }

    /// Returns the version with this parsed minor number.
    pub(super) fn of_minor(minor: Option<u8>) -> Self {
        if minor == Some(0) {
            Self::Http10
        } else {
            Self::Http11
        }
    }
}
