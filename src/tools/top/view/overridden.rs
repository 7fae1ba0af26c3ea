//! What of a zone is not as in the file.

use super::numbers::moment;
use crate::status::views::{GateOverride, Override, ZoneSample};

/// In one or two words, for a list; `None` for a zone that is as in the file.
pub(super) fn short(zone: &ZoneSample) -> Option<String> {
    match &zone.overridden {
        Some(it) => Some(what(it)),
        None if zone.overridden_keys > 0 => Some("keys".to_owned()),
        None => None,
    }
}

/// In lines of their own; none for a zone that is as in the file.
pub(in crate::tools::top) fn lines(zone: &ZoneSample) -> Vec<String> {
    let whole = zone.overridden.as_ref().map(|it| {
        let until = moment(it.until.as_str());
        format!(
            "not as in the file: {}, until {until}, by {}",
            what(it),
            it.by
        )
    });
    let keys = match zone.overridden_keys {
        0 => None,
        1 => Some("1 key is not as in the file".to_owned()),
        more => Some(format!("{more} keys are not as in the file")),
    };
    whole.into_iter().chain(keys).collect()
}

/// What of a gate is not as in the file, with its end.
pub(in crate::tools::top) fn of_gate(it: &GateOverride) -> String {
    let parts = [
        it.pause.then(|| "paused".to_owned()),
        it.rate.as_ref().map(ToString::to_string),
        it.max_in_flight.map(|most| format!("{most} places")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let (what, until) = (parts.join(", "), moment(it.until.as_str()));
    format!("not as in the file: {what}, until {until}, by {}", it.by)
}

fn what(it: &Override) -> String {
    let dry_run = it.dry_run.map(|on| if on { "dry run" } else { "enforced" });
    let parts = [
        it.pause.then(|| "paused".to_owned()),
        it.rate.as_ref().map(ToString::to_string),
        dry_run.map(str::to_owned),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::views::Plain;

    #[test]
    fn what_is_overridden_is_named_with_its_end_and_who_set_it() {
        let mut zone = ZoneSample::default();
        assert_eq!((short(&zone), lines(&zone)), (None, Vec::new()));
        zone.overridden_keys = 2;
        assert_eq!(short(&zone).as_deref(), Some("keys"));
        zone.overridden = Some(Override {
            rate: Some(Plain::new("20r/s")),
            pause: true,
            dry_run: Some(false),
            until: Plain::new("2026-11-21T06:00:00.5Z"),
            by: Plain::new("127.0.0.1"),
            ..Override::default()
        });
        assert_eq!(short(&zone).as_deref(), Some("paused, 20r/s, enforced"));
        let whole = "not as in the file: paused, 20r/s, enforced, until 2026-11-21 06:00:00 UTC, by 127.0.0.1";
        assert_eq!(lines(&zone), [whole, "2 keys are not as in the file"]);
    }

    #[test]
    fn what_of_a_gate_is_overridden_is_named() {
        let of_gate = of_gate(&GateOverride {
            rate: Some(Plain::new("20r/s")),
            max_in_flight: Some(4),
            pause: true,
            until: Plain::new("2026-11-21T06:00:00.5Z"),
            by: Plain::new("ops"),
            ..GateOverride::default()
        });
        assert_eq!(
            of_gate,
            "not as in the file: paused, 20r/s, 4 places, until 2026-11-21 06:00:00 UTC, by ops"
        );
    }
}
