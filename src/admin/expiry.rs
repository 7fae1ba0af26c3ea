//! Ends overrides whose time is over.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use crate::config::{ChangedBy, History};
use crate::http::gateway::Gateway;
use crate::status::overridden::place;
use crate::time::clock;

/// How often they are looked at.
const EVERY: Duration = Duration::from_millis(100);

/// Looks at all zones for as long as the gateway runs.
pub(super) async fn run(gateway: watch::Receiver<Option<Arc<Gateway>>>, history: History) {
    loop {
        sleep(EVERY).await;
        let gateway = gateway.borrow().as_ref().map(Arc::clone);
        if let Some(gateway) = gateway {
            end_expired(&gateway, &history);
        }
    }
}

fn end_expired(gateway: &Gateway, history: &History) {
    let now = clock::now();
    for zone in gateway.zones() {
        if !zone.overrides().any_expired(now) {
            continue;
        }
        for key in zone.change_overrides(|overrides| overrides.take_expired(now)) {
            let place = place(zone, key.as_ref());
            tracing::info!(place, "override expired");
            let text = format!("{place}: override expired");
            history.add(now, ChangedBy::Expiry, vec![text]);
        }
    }
}
