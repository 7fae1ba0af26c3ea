use std::sync::Arc;

use config::Settings;

use crate::observe::metrics::ClassMetrics;
use crate::origin::Origin;

/// The metrics of the classes at the origins' gates, found without comparing names.
#[derive(Debug)]
pub(super) struct ClassTable {
    /// By the index of the route; `None`: its origin has no gate or no classes.
    of_routes: Vec<Option<Arc<ClassMetrics>>>,
    /// By the indices of the origin, and of the plan in the zone that shares its gate; `None`: the
    /// class is that of the route.
    of_plans: Vec<Box<[Option<Arc<ClassMetrics>>]>>,
}

impl ClassTable {
    pub(super) fn new(settings: &Settings, origins: &[Origin]) -> Self {
        let all: Vec<_> = origins.iter().map(Classes::of).collect();
        let of_route = |route: &config::Route| all.get(route.origin()?)?.named(&route.class);
        let of_origin = |(origin, classes): (&Origin, &Classes)| {
            let zone = origin.settings().share.map(|zone| &settings.zones[zone]);
            let plans = zone.into_iter().flat_map(|zone| zone.plans.iter());
            plans
                .map(|plan| classes.named(plan.class.as_deref()?))
                .collect()
        };
        Self {
            of_routes: settings.routes.iter().map(of_route).collect(),
            of_plans: origins.iter().zip(&all).map(of_origin).collect(),
        }
    }

    /// The metrics of a request's class: that of the plan of its key there, or of its route.
    pub(super) fn of_request(
        &self,
        route: usize,
        origin: usize,
        plan: Option<usize>,
    ) -> Option<&ClassMetrics> {
        let of_plan = plan.and_then(|plan| self.of_plans.get(origin)?.get(plan)?.as_ref());
        let of_route = || self.of_routes.get(route)?.as_ref();
        of_plan.or_else(of_route).map(|metrics| &**metrics)
    }
}

/// The classes of one origin, in the order of the file; none without a gate.
struct Classes<'o>(Vec<(&'o str, Arc<ClassMetrics>)>);

impl<'o> Classes<'o> {
    fn of(origin: &'o Origin) -> Self {
        let classes = origin.settings().classes.iter();
        let named = classes.filter_map(|class| {
            let metrics = origin.gate()?.metrics().class(&class.name);
            Some((&*class.name, metrics))
        });
        Self(named.collect())
    }

    /// The first stands for a class that the origin does not have, as at its gate.
    fn named(&self, name: &str) -> Option<Arc<ClassMetrics>> {
        let known = self.0.iter().find(|(known, _)| *known == name);
        let (_, metrics) = known.or(self.0.first())?;
        Some(Arc::clone(metrics))
    }
}
