//! Tests of routes in maintenance.
//!
//! `reported` changes a second in which nothing is wrong (`fine`), and checks the headline after
//! ten such seconds: severity, cause and subject. Then `says` checks parts of its text.

use super::reported;
use crate::status::sample::MaintenanceSample;

/// Maintenance of `routes` routes, of which `route` is one; `None`: of all routes.
fn maintenance_of(route: Option<&str>, routes: u64) -> MaintenanceSample {
    MaintenanceSample {
        route: route.map(Into::into),
        routes,
        until: "2026-11-21T06:00:00Z".into(),
        by: "ops".into(),
    }
}

#[test]
fn routes_in_maintenance_are_a_headline() {
    reported("warn paused", |now| {
        now.maintenance = Some(maintenance_of(None, 0));
        // An override matters less.
        now.zones[0].overridden_keys = 1;
    })
    .says("All routes are in maintenance")
    .says("ops set it until 2026-11-21T06:00:00Z; requests get 503")
    .says("Undo it, or wait until it ends.");
    reported("warn paused", |now| {
        now.maintenance = Some(maintenance_of(Some("/api/"), 1));
    })
    .says("/api/ is in maintenance")
    .not(&["routes"]);
    reported("warn paused", |now| {
        now.maintenance = Some(maintenance_of(Some("/api/"), 3));
    })
    .says("3 routes are in maintenance")
    .not(&["/api/"]);
}
