//! Classes of statuses.

use super::label::labels;

labels! {
    /// Class of a response's status.
    pub enum CodeClass {
        /// 100 to 199.
        Interim = "1xx",
        /// 200 to 299.
        Success = "2xx",
        /// 300 to 399.
        Redirection = "3xx",
        /// 400 to 499.
        ClientError = "4xx",
        /// 500 and above.
        ServerError = "5xx",
    }
}

impl CodeClass {
    /// The class of `status`.
    pub fn of(status: u16) -> Self {
        match status {
            0..200 => Self::Interim,
            200..300 => Self::Success,
            300..400 => Self::Redirection,
            400..500 => Self::ClientError,
            500.. => Self::ServerError,
        }
    }
}
