use toml::de::DeTable;

/// The line number, from 1, of the rate of a zone in the text of a file.
pub(super) fn of_rate(text: &str, zone: &str) -> Option<usize> {
    let file = DeTable::parse(text).ok()?;
    let zones = file.get_ref().get("zones")?.get_ref().as_table()?;
    let rate = zones.get(zone)?.get_ref().as_table()?.get("rate")?;
    let before = text.get(..rate.span().start)?;
    Some(before.matches('\n').count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_that_of_the_zone() {
        let text = "# rate = \"1r/s\"\n\
                    [zones.other]\nrate = \"2r/s\"\n\
                    [zones.per_client]\nkey = \"$remote_addr\"\nrate = \"10r/s\" # pace\n\
                    [zones]\ninline = { key = \"a\", rate = \"3r/s\" }\n\"a.b\".rate = \"4r/s\"\n";
        let line = |zone| of_rate(text, zone);
        assert_eq!(line("per_client"), Some(6));
        assert_eq!(line("other"), Some(3));
        assert_eq!(line("absent"), None);

        let inline = "zones = { a = { rate = \"3r/s\" },\n\"b.c\" = { rate = \"4r/s\" } }";
        assert_eq!(of_rate(inline, "b.c"), Some(2));
        assert_eq!(of_rate("not = toml = at all", "a"), None);
    }
}
