//! Restarts of actors.

use ::metrics::counter;

use super::ACTOR_RESTARTS;

use super::label::labels;

labels! {
    /// The kinds of actors whose restarts are counted apart.
    pub enum ActorKind {
        /// A key's actor.
        Key = "key",
        /// A zone's supervisor on one worker.
        Supervisor = "supervisor",
    }
}

/// Counts an actor that panicked and starts again.
pub fn count_restart(kind: ActorKind) {
    counter!(ACTOR_RESTARTS, "kind" => kind.label()).increment(1);
}

/// Shows the series of all kinds, also while they are zero.
pub(super) fn show_restarts() {
    for kind in ActorKind::ALL {
        counter!(ACTOR_RESTARTS, "kind" => kind.label()).absolute(0);
    }
}

/// Held by tests in which supervisors panic: the count is that of the whole process.
#[cfg(test)]
pub(crate) fn count_alone() -> std::sync::MutexGuard<'static, ()> {
    static COUNTED: std::sync::Mutex<()> = std::sync::Mutex::new(());
    COUNTED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
