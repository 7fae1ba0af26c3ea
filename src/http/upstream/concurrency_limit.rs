use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Semaphore;

/// The slots of an origin, over all keys and workers: at most `max_in_flight` requests at once.
///
/// Waiters get a slot in the order in which they asked.
#[derive(Debug)]
pub(super) struct ConcurrencyLimit {
    free: Semaphore,
    /// How many more slots are taken than exist, after their number was lowered.
    owed: AtomicUsize,
}

/// One of the slots, taken until this is dropped.
#[derive(Debug)]
pub(super) struct Slot(Arc<ConcurrencyLimit>);

impl ConcurrencyLimit {
    pub(super) fn new(max_in_flight: usize) -> Self {
        Self {
            free: Semaphore::new(max_in_flight),
            owed: AtomicUsize::new(0),
        }
    }

    pub(super) async fn take(self: &Arc<Self>) -> Option<Slot> {
        // Fails only on a closed semaphore, and this one is never closed.
        let permit = self.free.acquire().await.ok()?;
        permit.forget();
        Some(Slot(Arc::clone(self)))
    }

    /// Changes the number of slots. Requests that have a slot keep it.
    pub(super) fn resize(&self, from: usize, to: usize) {
        for _ in from..to {
            self.give_back();
        }
        let fewer = from.saturating_sub(to);
        let taken = fewer - self.free.forget_permits(fewer);
        self.owed.fetch_add(taken, Ordering::Relaxed);
    }

    fn give_back(&self) {
        let pay = |owed: usize| owed.checked_sub(1);
        if self
            .owed
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, pay)
            .is_err()
        {
            self.free.add_permits(1);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn is_full(slots: &Arc<ConcurrencyLimit>) -> bool {
        tokio::time::timeout(Duration::from_millis(1), slots.take())
            .await
            .is_err()
    }

    #[test]
    fn there_are_as_many_as_asked_for_also_after_a_change() {
        actix_rt::System::new().block_on(async {
            let slots = Arc::new(ConcurrencyLimit::new(2));
            let (first, second) = (slots.take().await, slots.take().await);
            assert!(is_full(&slots).await);
            drop(first);
            let third = slots.take().await;
            assert!(is_full(&slots).await);

            slots.resize(2, 1);
            drop(second);
            assert!(is_full(&slots).await, "two had a slot, and there is one");
            drop(third);
            let fourth = slots.take().await;
            assert!(is_full(&slots).await);

            slots.resize(1, 3);
            let (fifth, sixth) = (slots.take().await, slots.take().await);
            assert!(is_full(&slots).await);
            drop((fourth, fifth, sixth));
        });
    }
}
