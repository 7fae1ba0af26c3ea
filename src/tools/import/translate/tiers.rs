//! Translates tiers, each a zone with a map, to one zone with plans.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::definition::Definition;
use super::plans::{Plan, Tiered};
use super::requests::LimitReq;
use super::scope::{Scope, each_location, named};
use super::tier_maps::{Role, TierZone, Unclear, match_keys};
use super::variables::Variables;
use crate::tools::import::notes::Notes;
use crate::tools::import::tree::Directive;

/// The tiers of a file.
#[derive(Default)]
pub(super) struct Tiers<'t> {
    clear: Vec<Tiered<'t>>,
    /// Why a zone that looks like a tier is none, by its name.
    unclear: HashMap<&'t str, String>,
}

/// The zones that may be tiers of one another.
struct Candidate<'t> {
    zones: Vec<&'t str>,
    /// What they come to, or what is unclear.
    tiered: Result<Tiered<'t>, String>,
}

impl<'t> Tiers<'t> {
    pub(super) fn read(http: &'t [Directive], variables: &Variables<'t>, notes: &Notes) -> Self {
        let mut tiers = Self::default();
        let families = families(http, variables).into_iter();
        let mut candidates: Vec<_> = families
            .filter_map(|zones| tiers.candidate(zones))
            .collect();
        check_locations(http, &mut candidates, notes);
        for Candidate { zones, tiered } in candidates {
            match tiered {
                Ok(tiered) => tiers.clear.push(tiered),
                Err(problem) => tiers.unclear.extend(zones.into_iter().map(|zone| {
                    let why = format!("it looks like one of several tiers, but {problem}; write one zone for all tiers by hand, with a plan for each");
                    (zone, why)
                })),
            }
        }
        tiers
    }

    /// The zone with plans that a zone of nginx becomes.
    pub(super) fn of_base(&self, zone: &str) -> Option<&Tiered<'t>> {
        self.clear.iter().find(|tiered| tiered.base == zone)
    }

    /// Whether a zone of nginx becomes a plan of another zone.
    pub(super) fn has_plan(&self, zone: &str) -> bool {
        let mut plans = self.clear.iter().flat_map(|tiered| &tiered.plans);
        plans.any(|plan| plan.definition.name == zone)
    }

    /// Why a zone that looks like a tier is none.
    pub(super) fn unclear(&self, zone: &str) -> Option<&str> {
        self.unclear.get(zone).map(String::as_str)
    }

    /// `None` if the zones do not look like tiers.
    fn candidate(&mut self, zones: Vec<TierZone<'t>>) -> Option<Candidate<'t>> {
        let has_keys =
            |zone: &TierZone| matches!(&zone.role, Ok(Role::Plan(keys)) if !keys.is_empty());
        let are_tiers = zones.iter().any(has_keys);
        let is_for_named = |zone: &TierZone| zone.is_for_named;
        let look_like_tiers = are_tiers || zones.len() > 1 && zones.iter().any(is_for_named);
        let key = zones.first()?.source.clone();
        let (mut bases, mut plans, mut odd) = (Vec::new(), Vec::new(), None);
        let (mut names, mut places) = (Vec::new(), Vec::new());
        for zone in zones {
            let name = zone.definition.name;
            match zone.role {
                Ok(Role::Base(left_out)) => bases.push((name, left_out)),
                Ok(Role::Plan(keys)) => plans.push(Plan {
                    definition: zone.definition,
                    keys,
                    burst: None,
                }),
                Err(why) => {
                    // A zone alone is told so only if its keys show that it is meant for some.
                    let is_other = matches!(why, Unclear::OtherKey { .. });
                    if look_like_tiers || zone.is_for_named && is_other {
                        self.unclear.insert(name, why.to_string());
                    }
                    if !zone.is_for_named {
                        odd = Some(name);
                    }
                    continue;
                }
            }
            names.push(name);
            places.extend(zone.places);
        }
        if !are_tiers {
            return None;
        }
        let matched = match (&bases[..], odd) {
            ([base], _) => match_keys(base, &plans).map(|()| base.0),
            ([], None) => Err(format!(
                "no zone limits all other keys by a map with {key} as its default"
            )),
            ([], Some(odd)) => Err(format!("the map of zone {odd} is unclear")),
            ([one, two, ..], _) => Err(format!(
                "zones {} and {} both limit all other keys",
                one.0, two.0
            )),
        };
        let tiered = matched.map(|base| Tiered {
            base,
            key,
            plans,
            places,
        });
        Some(Candidate {
            zones: names,
            tiered,
        })
    }
}

/// The zones that have maps, by what the maps look at.
fn families<'t>(http: &'t [Directive], variables: &Variables<'t>) -> Vec<Vec<TierZone<'t>>> {
    let mut known = HashSet::new();
    let mut families: Vec<Vec<TierZone>> = Vec::new();
    for directive in named(http, "limit_req_zone") {
        // What is wrong with it is noted where it is translated.
        let definition = Definition::read(directive, &mut Notes::default());
        let zone = definition
            .filter(|definition| known.insert(definition.name))
            .and_then(|definition| TierZone::of(definition, variables));
        let Some(zone) = zone else { continue };
        let mut alike = families.iter_mut();
        match alike.find(|family| family[0].source == zone.source) {
            Some(family) => family.push(zone),
            None => families.push(vec![zone]),
        }
    }
    families
}

/// Checks that the locations limit by all tiers alike.
fn check_locations(http: &[Directive], candidates: &mut [Candidate], notes: &Notes) {
    let mut of_zone: HashMap<String, usize> = HashMap::new();
    for (index, candidate) in candidates.iter().enumerate() {
        if candidate.tiered.is_ok() {
            of_zone.extend(
                candidate
                    .zones
                    .iter()
                    .map(|zone| ((*zone).to_owned(), index)),
            );
        }
    }
    if of_zone.is_empty() {
        return;
    }
    each_location(http, &Scope::default().inside(http), &mut |place, scope| {
        let directives = scope.all("limit_req").into_iter();
        let limits = directives.filter_map(|limit| LimitReq::read(limit, &mut Notes::default()));
        let limits: Vec<_> = limits.collect();
        let zones = limits.iter().filter_map(|limit| of_zone.get(limit.zone));
        for index in zones.copied().collect::<BTreeSet<_>>() {
            let candidate = &mut candidates[index];
            if let Ok(tiered) = &mut candidate.tiered
                && let Err(problem) = tiered.check(place, &limits, notes)
            {
                candidate.tiered = Err(problem);
            }
        }
    });
}
