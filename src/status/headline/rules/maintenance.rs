//! Routes that refuse their requests for a while.

use super::super::finding::{Cause, Finding, Severity};
use super::super::words::count;
use crate::status::views::Sample;
use crate::status::views::Suspicion;

pub(super) fn maintenance(now: &Sample) -> Option<Finding> {
    let it = now.maintenance.as_ref()?;
    let title = match &it.route {
        None => "All routes are in maintenance".to_owned(),
        Some(route) if it.routes < 2 => format!("{route} is in maintenance"),
        Some(_) => format!("{} are in maintenance", count(it.routes, "route")),
    };
    Some(Finding {
        title,
        evidence: format!("{} set it until {}; requests get 503.", it.by, it.until),
        remedy: "Undo it, or wait until it ends.".to_owned(),
        suspicion: Suspicion::Unnamed,
        ..Finding::new(Cause::Maintenance, Severity::Warn)
    })
}
