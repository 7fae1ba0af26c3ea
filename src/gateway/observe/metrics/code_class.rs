/// Class of a response's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeClass {
    /// 100 to 199.
    Interim,
    /// 200 to 299.
    Success,
    /// 300 to 399.
    Redirection,
    /// 400 to 499.
    ClientError,
    /// 500 and above.
    ServerError,
}

impl CodeClass {
    /// All classes, in their order.
    pub const ALL: [Self; 5] = [
        Self::Interim,
        Self::Success,
        Self::Redirection,
        Self::ClientError,
        Self::ServerError,
    ];

    /// The class of `status`.
    #[must_use]
    pub fn of(status: u16) -> Self {
        match status {
            0..200 => Self::Interim,
            200..300 => Self::Success,
            300..400 => Self::Redirection,
            400..500 => Self::ClientError,
            500.. => Self::ServerError,
        }
    }

    /// The value of the label `code` of an origin's responses.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Interim => "1xx",
            Self::Success => "2xx",
            Self::Redirection => "3xx",
            Self::ClientError => "4xx",
            Self::ServerError => "5xx",
        }
    }
}
