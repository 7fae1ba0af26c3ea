use super::definition::Definition;
use super::page::{Names, Section, list};
use super::requests::LimitReq;
use crate::config::KeyTemplate;
use crate::tools::import::notes::{Notes, Place};

/// A zone with plans.
pub(super) struct Tiered<'t> {
    /// nginx's name of the zone for all keys without a plan.
    pub(super) base: &'t str,
    pub(super) key: KeyTemplate,
    pub(super) plans: Vec<Plan<'t>>,
    /// The places of the maps.
    pub(super) places: Vec<Place>,
}

/// A plan, from a zone of nginx.
pub(super) struct Plan<'t> {
    pub(super) definition: Definition<'t>,
    /// May be empty. drip has no such plans.
    pub(super) keys: Vec<&'t str>,
    /// The burst, and the first location that says so. `None` if no location limits by the zone.
    pub(super) burst: Option<(u32, Place)>,
}

impl Tiered<'_> {
    /// Notes that keys are compared otherwise here, where that makes a difference.
    pub(super) fn note_spelling(&self, place: Place, notes: &mut Notes) {
        let has_letters = |key: &&str| key.bytes().any(|byte| byte.is_ascii_alphabetic());
        if self
            .plans
            .iter()
            .flat_map(|plan| &plan.keys)
            .any(has_letters)
        {
            notes.add(place, format!("zone {}: nginx compares the values of its maps without regard to case, and drip the keys of plans exactly; add every other spelling that clients send to keys", self.base));
        }
    }

    /// Checks the limits of a location that limits by one of the tiers at least.
    pub(super) fn check(
        &mut self,
        place: Place,
        limits: &[LimitReq],
        notes: &Notes,
    ) -> Result<(), String> {
        let of = |zone: &str| limits.iter().find(|limit| limit.zone == zone);
        let (base, here) = (of(self.base), notes.name(place));
        for plan in self.plans.iter_mut().filter(|plan| !plan.keys.is_empty()) {
            let zone = plan.definition.name;
            let (base, own) = match (base, of(zone)) {
                (Some(base), Some(own)) => (base, own),
                (None, None) => continue,
                (limited, _) => {
                    let (with, without) = if limited.is_some() {
                        (self.base, zone)
                    } else {
                        (zone, self.base)
                    };
                    return Err(format!(
                        "the location at {here} limits by zone {with} and not by zone {without}"
                    ));
                }
            };
            if !base.delays_like(own) {
                return Err(format!(
                    "the location at {here} delays by zone {zone} otherwise than by zone {}",
                    self.base
                ));
            }
            let (burst, there) = *plan.burst.get_or_insert((own.burst, place));
            if burst != own.burst {
                return Err(format!(
                    "zone {zone} has burst {} at {here} and burst {burst} at {}",
                    own.burst,
                    notes.name(there)
                ));
            }
        }
        Ok(())
    }
}

impl Plan<'_> {
    /// The section of the plan in a zone of the settings.
    pub(super) fn section(
        &self,
        zone: &str,
        names: &mut Names,
        notes: &mut Notes,
    ) -> Option<Section> {
        let before = notes.count();
        let (place, name) = (self.definition.place, self.definition.name);
        if self.keys.is_empty() {
            notes.add_of_limit(place, format!("zone {name} is left out: its map gives no key, and drip has no plans without keys"));
            return None;
        }
        let rate = self.definition.rate().ok()?;
        let mut section = Section::new(format!("[zones.{zone}.plans.{}]", names.unique(name)));
        let keys: Vec<String> = self.keys.iter().map(|key| (*key).to_owned()).collect();
        section.fields.push(("keys", list(&keys)));
        section.text("rate", &self.definition.noted(rate, notes));
        if let Some((burst, _)) = self.burst {
            section.fields.push(("burst", burst.to_string()));
        }
        section.comments = notes.since(before);
        Some(section)
    }
}
