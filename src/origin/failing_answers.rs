//! Answers that count as failures of their server, and how many servers they may take out.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::health::MaxFails;
use super::server::Server;
use crate::config::FailOn;
use crate::limit::Moment;

/// The answers of an origin that count as failures.
#[derive(Debug)]
pub(super) struct FailingAnswers {
    fail_on: Vec<FailOn>,
    servers: Vec<Arc<Server>>,
    /// One server at a time is taken out, so that two do not go because each sees the other in.
    ///
    /// Reloads keep it.
    one_goes: Arc<Mutex<()>>,
}

impl FailingAnswers {
    /// `None` if no answer counts, or if there is no other server.
    pub(super) fn of(
        fail_on: &[FailOn],
        servers: &[Arc<Server>],
        before: Option<&Self>,
    ) -> Option<Box<Self>> {
        if fail_on.is_empty() || servers.len() < 2 {
            return None;
        }
        Some(Box::new(Self {
            fail_on: fail_on.to_vec(),
            servers: servers.to_vec(),
            one_goes: before.map_or_else(Arc::default, |it| Arc::clone(&it.one_goes)),
        }))
    }

    /// Why an answer counts as a failure, if it does.
    pub(super) fn reason(&self, status: u16, took: Duration) -> Option<String> {
        let failed = self.fail_on.iter().find(|it| it.has(status, took))?;
        Some(match failed {
            FailOn::Status(_) => format!("it answered {status}"),
            FailOn::Slow(_) => format!("it answered after {took:?}"),
        })
    }

    /// Counts an answer as a failure of `server`, for this reason.
    ///
    /// Answers take no more than half of the servers out, and never the last one that is in: while
    /// all answer 503, half of them are better than none.
    pub(super) fn failed(
        &self,
        server: &Arc<Server>,
        reason: &str,
        max_fails: MaxFails,
        now: Moment,
    ) {
        let _alone = self.one_goes.lock().unwrap_or_else(PoisonError::into_inner);
        let others = || self.servers.iter().filter(|it| !Arc::ptr_eq(it, server));
        let out = others().filter(|it| it.is_out_by_answers(now)).count();
        let may_go = 2 * (out + 1) <= self.servers.len() && others().any(|it| it.is_in(false, now));
        if may_go {
            server.note_by_answers(true);
        }
        let in_a_row = if may_go { max_fails.in_a_row } else { u32::MAX };
        let max_fails = MaxFails {
            in_a_row,
            ..max_fails
        };
        server.failed_by_answer(reason, max_fails, now);
    }
}
