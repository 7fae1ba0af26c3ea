//! What messages about a file say in place of keys of clients, and of what may be one.

use toml::de::DeTable;

use super::Plan;

/// What messages say of a key of a client, and of what may be one.
pub(super) const HIDDEN: &str = "hidden by mask_keys";

/// Whether a text has this name where keys of a client may be: in the plans of a zone that masks
/// them, and not as the name of a plan or of a field.
///
/// `is_masked` says whether a zone masks its keys, whatever the text says.
pub(super) fn may_be_key(file: &DeTable, name: &str, is_masked: impl Fn(&str) -> bool) -> bool {
    let zones = file.get("zones").and_then(|it| it.get_ref().as_table());
    zones.into_iter().flatten().any(|(zone, settings)| {
        let Some(settings) = settings.get_ref().as_table() else {
            return false;
        };
        let mask_keys = settings.get("mask_keys");
        // A wrong value may have meant true.
        let masks = mask_keys.is_some_and(|it| it.get_ref().as_bool() != Some(false));
        let plans = settings.get("plans").and_then(|it| it.get_ref().as_table());
        let mut plans = plans.into_iter().flatten();
        (masks || is_masked(zone.get_ref()))
            && plans.any(|(plan, fields)| match fields.get_ref().as_table() {
                Some(fields) => !Plan::has_field(name) && is_in(fields, name),
                None => plan.get_ref() == name,
            })
    })
}

/// Whether a table has this name, or one in it.
fn is_in(table: &DeTable, name: &str) -> bool {
    table.iter().any(|(key, value)| {
        let inner = value.get_ref().as_table();
        key.get_ref() == name || inner.is_some_and(|inner| is_in(inner, name))
    })
}
