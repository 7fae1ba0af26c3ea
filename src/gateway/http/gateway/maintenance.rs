//! Maintenance: routes reject requests with 503 for a while, without a change of the file.
//!
//! A route in maintenance gets [`RouteAction::Maintenance`] in the settings, so requests need no
//! additional check.

use std::collections::BTreeMap;

use actix_rt::ArbiterHandle;
use config::{Route, RouteAction};
use limit::Moment;

use super::Gateway;
use crate::overrides::Override;
use crate::time::clock;

/// Maintenance of one route or of all routes: an override without values.
pub type Maintenance = Override<()>;

/// All current maintenances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maintenances {
    /// Maintenance of all routes.
    pub all: Option<Maintenance>,
    /// Maintenance of single routes, by name.
    pub routes: BTreeMap<String, Maintenance>,
}

/// Target of a maintenance: a route by its name, or all routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MaintenanceTarget {
    /// All routes that have an origin, including routes that a reload adds.
    AllRoutes,
    /// All routes with this name.
    Route(String),
}

impl Maintenances {
    /// Sets the maintenance of a target. Returns the previous one.
    pub fn set(&mut self, target: MaintenanceTarget, new: Maintenance) -> Option<Maintenance> {
        match target {
            MaintenanceTarget::AllRoutes => self.all.replace(new),
            MaintenanceTarget::Route(name) => self.routes.insert(name, new),
        }
    }

    /// Ends the maintenance of a target. Returns it.
    pub fn end(&mut self, target: &MaintenanceTarget) -> Option<Maintenance> {
        match target {
            MaintenanceTarget::AllRoutes => self.all.take(),
            MaintenanceTarget::Route(name) => self.routes.remove(name),
        }
    }

    /// Returns whether any maintenance has expired.
    pub(crate) fn any_expired(&self, now: Moment) -> bool {
        let mut all = self.all.iter().chain(self.routes.values());
        all.any(|it| it.has_expired(now))
    }

    /// Ends expired maintenances. Returns their targets.
    pub fn take_expired(&mut self, now: Moment) -> Vec<MaintenanceTarget> {
        let all = self.all.take_if(|it| it.has_expired(now));
        let all_routes = all.map(|_| MaintenanceTarget::AllRoutes);
        let routes = std::mem::take(&mut self.routes).into_iter();
        let expired: BTreeMap<_, _>;
        (expired, self.routes) = routes.partition(|(_, it)| it.has_expired(now));
        let expired = expired.into_keys().map(MaintenanceTarget::Route);
        all_routes.into_iter().chain(expired).collect()
    }

    /// Returns the maintenance of a route: its own or that of all routes, whichever ends later.
    pub fn of(&self, route: &Route) -> Option<&Maintenance> {
        route.origin()?;
        let own = self.routes.get(&route.name());
        own.into_iter().chain(&self.all).max_by_key(|it| it.until)
    }

    /// Ends the maintenance of routes that do not exist or do not forward. Returns their names.
    fn keep_only(&mut self, routes: &[Route]) -> Vec<String> {
        let mut removed = std::mem::take(&mut self.routes);
        for route in routes.iter().filter(|route| route.origin().is_some()) {
            self.routes.extend(removed.remove_entry(&route.name()));
        }
        removed.into_keys().collect()
    }

    /// Sets the action of each route: maintenance or forwarding.
    fn apply(&self, routes: &mut [Route]) {
        for route in routes {
            if let Some(origin) = route.origin() {
                route.action = match self.of(route).map(|it| it.until) {
                    None => RouteAction::Forward(origin),
                    Some(until) => RouteAction::Maintenance { origin, until },
                };
            }
        }
    }
}

impl Gateway {
    /// Returns all current maintenances.
    pub(crate) fn maintenances(&self) -> &Maintenances {
        &self.maintenances
    }

    /// Returns the next gateway with the same settings and these maintenances.
    pub(crate) fn with_maintenances(
        &self,
        maintenances: Maintenances,
        workers: &[ArbiterHandle],
    ) -> Self {
        let mut settings = self.settings.clone();
        maintenances.apply(&mut settings.routes);
        Self {
            maintenances,
            ..self.next(settings, workers, self.access.clone(), clock::now())
        }
    }

    /// Returns the maintenances that continue after a reload. Applies them to the new `routes`.
    pub(super) fn maintenances_after(&self, routes: &mut [Route]) -> Maintenances {
        let mut maintenances = self.maintenances.clone();
        for route in maintenances.keep_only(routes) {
            tracing::warn!(
                route,
                "maintenance ended: the file has no such route that forwards"
            );
        }
        maintenances.apply(routes);
        maintenances
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes() -> Vec<Route> {
        let more = "[[routes]]\npath = \"/a\"\norigin = \"app\"\n\
            [[routes]]\npath = \"/no\"\nrefuse = 404\n";
        crate::test_settings::with_fields("", "", more).routes
    }

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    fn until(seconds: u64) -> Maintenance {
        Maintenance {
            since: at(1),
            until: at(seconds),
            by: "ops".into(),
            ..Maintenance::default()
        }
    }

    fn route(name: &str) -> MaintenanceTarget {
        MaintenanceTarget::Route(name.to_owned())
    }

    /// Returns the end of maintenance of each route; `None` without maintenance.
    fn ends(maintenances: &Maintenances, routes: &mut [Route]) -> Vec<Option<Moment>> {
        maintenances.apply(routes);
        let end = |route: &Route| match route.action {
            RouteAction::Maintenance { origin, until } => {
                assert_eq!((origin, route.origin()), (0, Some(0)));
                Some(until)
            }
            RouteAction::Forward(_) | RouteAction::Refuse(_) => None,
        };
        routes.iter().map(end).collect()
    }

    #[test]
    fn the_later_end_holds_and_each_ends_in_its_time() {
        let (mut routes, mut all) = (routes(), Maintenances::default());
        let before = routes.clone();
        assert_eq!(all.set(route("/a"), until(5)), None);
        assert_eq!(ends(&all, &mut routes), [None, Some(at(5)), None]);
        assert_eq!(all.set(MaintenanceTarget::AllRoutes, until(9)), None);
        assert_eq!(ends(&all, &mut routes), [Some(at(9)), Some(at(9)), None]);
        assert_eq!(all.set(route("/a"), until(20)), Some(until(5)));
        assert_eq!(ends(&all, &mut routes), [Some(at(9)), Some(at(20)), None]);

        assert!(!all.any_expired(at(8)) && all.take_expired(at(8)).is_empty());
        assert!(all.any_expired(at(9)));
        assert_eq!(all.take_expired(at(9)), [MaintenanceTarget::AllRoutes]);
        assert_eq!(ends(&all, &mut routes), [None, Some(at(20)), None]);
        assert_eq!(all.take_expired(at(20)), [route("/a")]);
        assert_eq!(ends(&all, &mut routes), [None; 3]);
        assert_eq!(routes, before, "all is as in the file");
    }

    #[test]
    fn a_reload_keeps_what_is_still_there() {
        let mut all = Maintenances::default();
        for name in ["/a", "/no", "/gone"] {
            all.set(route(name), until(5));
        }
        all.set(MaintenanceTarget::AllRoutes, until(3));
        assert_eq!(all.keep_only(&routes()), ["/gone", "/no"]);
        assert_eq!(all.end(&route("/a")), Some(until(5)));
        assert_eq!(all.end(&route("/a")), None);
        assert_eq!(all.all.as_ref(), Some(&until(3)));
    }
}
