use crate::tools::import::notes::{Notes, Place};
use crate::tools::import::tree::Directive;
use crate::tools::import::values;

/// A `limit_req` as it is written.
pub(super) struct LimitReq<'t> {
    pub(super) place: Place,
    pub(super) zone: &'t str,
    pub(super) burst: u32,
    /// `None`: nothing waits.
    delay: Option<u32>,
}

impl<'t> LimitReq<'t> {
    pub(super) fn read(directive: &'t Directive, notes: &mut Notes) -> Option<Self> {
        let place = directive.place;
        let (mut zone, mut burst, mut delay) = (None, 0, Some(0));
        for arg in &directive.args {
            let (name, value) = arg.split_once('=').unwrap_or((arg, ""));
            match name {
                "zone" => zone = Some(value),
                "nodelay" => delay = None,
                "burst" | "delay" => match values::whole(value) {
                    Some(number) if name == "burst" => burst = number,
                    Some(number) => delay = Some(number),
                    None => notes.add(
                        place,
                        format!(
                            "limit_req: {name} is a whole number, not \"{value}\"; it is left out"
                        ),
                    ),
                },
                _ => notes.add(
                    place,
                    format!("limit_req: {arg} is not known; is a ; missing?"),
                ),
            }
        }
        if zone.is_none() {
            notes.lose(place, "limit_req has no zone; this limit is left out");
        }
        Some(Self {
            place,
            zone: zone?,
            burst,
            delay,
        })
    }

    /// Whether requests wait as they do by a limit of another burst.
    ///
    /// Both become one limit in drip, with the burst and the delay of this one.
    pub(super) fn delays_like(&self, other: &Self) -> bool {
        self.delay == other.delay && (self.delay().is_some() || other.delay().is_none())
    }

    /// How many requests of the burst go on at once. `None`: nothing ever waits.
    pub(super) fn delay(&self) -> Option<u32> {
        self.delay.filter(|delay| *delay <= self.burst)
    }
}
