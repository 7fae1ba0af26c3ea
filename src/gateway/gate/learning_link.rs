use std::sync::Arc;

use limit::{Ask, LearnedReply};

use super::store_key::StoreKey;
use crate::store::{BACKOFF_FORM, BackoffCall};
use crate::zone::{StoreHealth, StoreRefusal};

/// A gate's way to what gateways have learned of its origin.
///
/// One task of one worker has it, and uses the link of that worker.
pub(super) struct LearningLink {
    key: StoreKey,
}

impl LearningLink {
    /// The way of the gate of this origin, from this thread. Does not connect.
    pub(super) fn new(store_health: &Arc<StoreHealth>, origin: &str) -> Self {
        let name = format!("backoff:{origin}.{BACKOFF_FORM}");
        Self {
            key: StoreKey::new(store_health, origin, name),
        }
    }

    /// Asks, and tells.
    pub(super) async fn ask(&mut self, ask: &Ask) -> Result<LearnedReply, StoreRefusal> {
        let call = BackoffCall {
            key: &self.key.name,
            ask,
            at: None,
        };
        let asked = self.key.link.store().exchange_backoff(&call);
        let (told, _) = self.key.link.run(asked).await;
        if let Err(error) = &told
            // Others tell of an outage.
            && !error.is_outage()
        {
            let what = "back-off, so this gateway backs off alone";
            self.key.tell_refused(error, what);
        }
        told.map_err(|error| StoreRefusal::from(&error))
    }

    /// Waits until the store is worth another question.
    pub(super) async fn wait_until_back(&mut self) {
        while !self.key.is_back().await {}
    }
}
