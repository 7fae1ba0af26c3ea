//! Routes in maintenance.

use super::{Situation, check_all};
use crate::status::views::MaintenanceSample;

fn set(route: Option<&str>, routes: u64) -> MaintenanceSample {
    MaintenanceSample {
        route: route.map(Into::into),
        routes,
        until: "2026-11-21T06:00:00Z".into(),
        by: "ops".into(),
    }
}

const SITUATIONS: &[Situation] = &[
    Situation {
        change: |it| {
            it.maintenance = Some(set(None, 0));
            // What is not as in the file is the lesser matter.
            it.zones[0].overridden_keys = 1;
        },
        cause: "paused",
        severity: "warn",
        about: None,
        says: &[
            "All routes are in maintenance",
            "ops set it until 2026-11-21T06:00:00Z; requests get 503",
            "Undo it, or wait until it ends.",
        ],
        says_not: &[],
    },
    Situation {
        change: |it| it.maintenance = Some(set(Some("/api/"), 1)),
        cause: "paused",
        severity: "warn",
        about: None,
        says: &["/api/ is in maintenance"],
        says_not: &["routes"],
    },
    Situation {
        change: |it| it.maintenance = Some(set(Some("/api/"), 3)),
        cause: "paused",
        severity: "warn",
        about: None,
        says: &["3 routes are in maintenance"],
        says_not: &["/api/"],
    },
];

#[test]
fn routes_in_maintenance_are_a_headline() {
    check_all(SITUATIONS);
}
