use super::variables::of_drip_alone;
use crate::config::{KeyError, KeyTemplate};
use crate::limit::Rate;
use crate::tools::import::notes::{Notes, Place};
use crate::tools::import::tree::Directive;
use crate::tools::import::values;

/// A `limit_req_zone` or `limit_conn_zone` as it is written.
pub(super) struct Definition<'t> {
    pub(super) place: Place,
    pub(super) key: &'t str,
    pub(super) name: &'t str,
    size: &'t str,
    rate: Option<&'t str>,
}

impl<'t> Definition<'t> {
    pub(super) fn read(directive: &'t Directive, notes: &mut Notes) -> Option<Self> {
        let (place, title) = (directive.place, &directive.name);
        let Some((key, args)) = directive.args.split_first() else {
            notes.add_of_limit(place, format!("{title} has no key; it is left out"));
            return None;
        };
        let (mut zone, mut rate) = (None, None);
        for arg in args {
            match arg.split_once('=') {
                Some(("zone", text)) => zone = Some(text),
                Some(("rate", text)) if title == "limit_req_zone" => rate = Some(text),
                _ if arg == "sync" => {
                    notes.add(place, "sync: drip's zones are not shared between hosts");
                }
                _ => notes.add(place, format!("{title}: {arg} is not known")),
            }
        }
        let Some((name, size)) = zone.map(|zone| zone.split_once(':').unwrap_or((zone, ""))) else {
            notes.add_of_limit(
                place,
                format!("{title} has no zone=NAME:SIZE; it is left out"),
            );
            return None;
        };
        Some(Self {
            place,
            key,
            name,
            size,
            rate,
        })
    }

    /// Notes why the zone is left out.
    pub(super) fn left_out(&self, why: &str, notes: &mut Notes) {
        let name = self.name;
        notes.add_of_limit(
            self.place,
            format!("zone {name} is left out, and so are its limits: {why}"),
        );
    }

    /// Notes that a zone of this name is there already.
    pub(super) fn is_second(&self, notes: &mut Notes) {
        let name = self.name;
        notes.add(
            self.place,
            format!("zone {name} is defined a second time; this one is left out"),
        );
    }

    /// The zone's size in bytes. Without one, `max_keys` keeps its default.
    pub(super) fn bytes(&self, notes: &mut Notes) -> Option<u64> {
        let (name, size) = (self.name, self.size);
        let bytes = values::size(size).filter(|bytes| *bytes > 0);
        if bytes.is_none() {
            notes.add(
                self.place,
                format!("zone {name}: \"{size}\" is not a size; max_keys keeps its default"),
            );
        }
        bytes
    }

    /// The rate in drip's form, and whether it had to be made slower.
    pub(super) fn rate(&self) -> Result<(String, bool), String> {
        // nginx's default.
        let text = self.rate.unwrap_or("1r/s");
        let (count, unit) = match text.split_once("r/") {
            Some((count, unit @ ("s" | "m"))) => (count, unit),
            None => (text, "s"),
            Some(_) => ("", ""),
        };
        let Some(count) = values::whole(count).filter(|count| *count > 0) else {
            return Err(format!(
                "its rate is \"{text}\", which is not a rate such as 10r/s or 30r/m"
            ));
        };
        let rate = format!("{count}r/{unit}");
        Ok(match rate.parse::<Rate>() {
            Ok(_) => (rate, false),
            Err(_) => ("1000000r/s".to_owned(), true),
        })
    }

    /// A rate in drip's form, with a note if it had to be made slower.
    pub(super) fn noted(&self, (rate, slower): (String, bool), notes: &mut Notes) -> String {
        if slower {
            notes.add(self.place, "the fastest rate of drip is 1000000r/s");
        }
        rate
    }
}

/// The key in drip's form.
pub(super) fn key(text: &str) -> Result<KeyTemplate, String> {
    let known = text
        .replace("$binary_remote_addr", "$remote_addr")
        .replace("${binary_remote_addr}", "${remote_addr}");
    let key = known.parse::<KeyTemplate>();
    let key = key.and_then(|key| match of_drip_alone(&key) {
        Some(variable) => Err(KeyError::Unknown(variable.to_string())),
        None => Ok(key),
    });
    key.map_err(|error| {
        format!(
            "its key is \"{text}\"; {error} (networks that a map or geo exempts can be in exempt)"
        )
    })
}
