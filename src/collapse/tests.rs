//! Requests that wait for each other's answers, with their channels.

use std::num::NonZeroU64;
use std::time::Duration;

use crate::config::KeyTemplate;

use super::*;

/// What a route says that keeps answers for so many seconds, and stale ones for so many.
pub(super) fn collapse(keep: u64, stale: u64) -> Collapse {
    Collapse {
        key: KeyTemplate::parse("$host$request_uri").expect("a key"),
        vary: vec!["accept-encoding".to_owned(), "accept-language".to_owned()],
        keep: Duration::from_secs(keep),
        stale: Duration::from_secs(stale),
        max_size: NonZeroU64::new(1_000_000).expect("not zero"),
        cookies: None,
    }
}
