//! Maintenance: routes refuse their requests with 503 for a while, without a change of the file.
//!
//! The action of such a route is another one in the settings, so that a request asks nothing more.

use std::collections::BTreeMap;

use actix_rt::ArbiterHandle;
use config::{Route, RouteAction};
use limit::Moment;

use super::Gateway;

/// Maintenance of a route, or of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maintenance {
    /// When it began.
    pub since: Moment,
    /// When it ends.
    pub until: Moment,
    /// Who set it: the name of a token, or an address.
    pub by: String,
}

/// What is in maintenance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maintenances {
    /// All routes.
    pub all: Option<Maintenance>,
    /// Single routes, by their names.
    pub routes: BTreeMap<String, Maintenance>,
}

/// A route by its name, or all routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MaintenanceTarget {
    /// All routes that have an origin, also those that a reload adds.
    AllRoutes,
    /// All routes with this name.
    Route(String),
}

impl Maintenances {
    /// Sets that of a target. Returns the one before.
    pub fn set(&mut self, target: MaintenanceTarget, new: Maintenance) -> Option<Maintenance> {
        match target {
            MaintenanceTarget::AllRoutes => self.all.replace(new),
            MaintenanceTarget::Route(name) => self.routes.insert(name, new),
        }
    }

    /// Ends that of a target.
    pub fn end(&mut self, target: &MaintenanceTarget) -> Option<Maintenance> {
        match target {
            MaintenanceTarget::AllRoutes => self.all.take(),
            MaintenanceTarget::Route(name) => self.routes.remove(name),
        }
    }

    /// Whether the time of any is over.
    pub(crate) fn any_expired(&self, now: Moment) -> bool {
        let mut all = self.all.iter().chain(self.routes.values());
        all.any(|it| it.until <= now)
    }

    /// Ends those whose time is over. Returns what they were for.
    pub fn take_expired(&mut self, now: Moment) -> Vec<MaintenanceTarget> {
        let all = self.all.take_if(|it| it.until <= now);
        let mut expired: Vec<_> = all
            .map(|_| MaintenanceTarget::AllRoutes)
            .into_iter()
            .collect();
        self.routes.retain(|name, it| {
            let is_over = it.until <= now;
            if is_over {
                expired.push(MaintenanceTarget::Route(name.clone()));
            }
            !is_over
        });
        expired
    }

    /// What a route is in: of its own and that of all routes, the one that ends later.
    pub fn of(&self, route: &Route) -> Option<&Maintenance> {
        route.origin()?;
        let own = if self.routes.is_empty() {
            None
        } else {
            self.routes.get(&route.name())
        };
        own.into_iter().chain(&self.all).max_by_key(|it| it.until)
    }

    /// Ends those of routes that are not among these. Returns their names.
    fn keep_only(&mut self, routes: &[Route]) -> Vec<String> {
        if self.routes.is_empty() {
            return Vec::new();
        }
        let mut gone = std::mem::take(&mut self.routes);
        for route in routes.iter().filter(|route| route.origin().is_some()) {
            self.routes.extend(gone.remove_entry(&route.name()));
        }
        gone.into_keys().collect()
    }

    /// Makes the routes refuse their requests or forward them.
    fn apply(&self, routes: &mut [Route]) {
        for route in routes {
            if let Some(origin) = route.origin() {
                let until = self.of(route).map(|it| it.until);
                route.action = until.map_or(RouteAction::Forward(origin), |until| {
                    RouteAction::Maintenance { origin, until }
                });
            }
        }
    }
}

impl Gateway {
    /// What is in maintenance now.
    pub(crate) fn maintenances(&self) -> &Maintenances {
        &self.maintenances
    }

    /// The gateway under the same settings, with this in maintenance.
    pub(crate) fn with_maintenances(
        &self,
        maintenances: Maintenances,
        workers: &[ArbiterHandle],
    ) -> Self {
        let mut settings = self.settings.clone();
        maintenances.apply(&mut settings.routes);
        let mut next = self.next(settings, workers, self.access.clone());
        next.maintenances = maintenances;
        next
    }

    /// What of the maintenance goes on after a reload with these routes, which begin with it.
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
            by: "ops".to_owned(),
        }
    }

    fn route(name: &str) -> MaintenanceTarget {
        MaintenanceTarget::Route(name.to_owned())
    }

    /// When the routes forward again; `None`: they do, or refuse by the file.
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
        let both = [Some(at(9)), Some(at(9)), None];
        assert_eq!(ends(&all, &mut routes), both);
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
