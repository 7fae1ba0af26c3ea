//! Tests of plans, and of their key files.
//!
//! `SMALLEST` in the parent module is a valid file. Each case replaces a text in it.

use std::fs;

use ::limit::Delay::{Above, Never};

use super::*;

/// Text in the smallest file that cases replace.
const RATE: &str = "rate = \"10r/s\"";

/// Rows of replaced text, replacement and expected problems, as [`Case`] describes them.
#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    (RATE, "rate = \"10r/s\"\nplans.gold = {}",
     "7:14: gold: the plan has no keys; add some such as keys = [\"alice\"], or file = \"gold.txt\" with one key a line"),
    (RATE, "rate = \"10r/s\"\nplans.gold = { keys = [\"a\"] }\nplans.silver = { keys = [\"b\", \"a\"] }",
     "8:25: keys: the key \"a\" is in the plans gold and silver; remove it from one"),
    // If keys are masked, the location identifies the key.
    (RATE, "rate = \"10r/s\"\nmask_keys = true\nplans.gold = { keys = [\"a\"] }\nplans.silver = { keys = [\"b\", \"a\"] }",
     "9:31: keys: the key hidden by mask_keys is in the plans gold and silver; remove it from one"),
    (RATE, "rate = \"10r/s\"\nmask_keys = true\nplans.gold = { keys = \"alice\" }",
     "8:23: keys: expected a list such as [\"alice\", \"bob\"]; found a value hidden by mask_keys"),
    (RATE, "rate = \"10r/s\"\nmask_keys = true\nplans.\"sk live\" = { keys = [\"a\"] }",
     "8:19: plans: a name is made of letters, digits, _, - and ."),
    (RATE, "rate = \"10r/s\"\nmask_keys = true\nplans.gold = { wieght = 1, keys = [\"a\"] }",
     "8:16: a name hidden by mask_keys is not a field of [zones.per_client.plans.gold], whose fields are keys, file, rate, burst, weight, class; did you mean weight?"),
    (RATE, "rate = \"10r/s\"\nmask_keys = true\nstore = \"redis\"\nplans.gold = { keys = [\"a\"], rate = \"0.123456789r/d\" }",
     "9:37: rate: leaky_bucket cannot count at this rate in this store; found a value hidden by mask_keys"),
    (RATE, "rate = \"10r/s\"\nplans.gold = { keys = [\"a\"], class = \"batch\" }",
     "7:38: class: no origin has a class batch; none has classes"),
    (RATE, "rate = \"10r/s\"\nstore = \"redis\"\nplans.gold = { keys = [\"a\"], rate = \"0.123456789r/d\" }",
     "8:37: rate: the count of this rate has too many decimals for a period this long to be kept exactly in Redis; found \"0.123456789r/d\""),
];

/// Parses the smallest file with these plans, beside files with names and contents.
fn parse_beside(plans: &str, files: &[(&str, &str)]) -> Result<Settings, String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let file = folder.path().join("gateway.toml");
    parse(&with_lines(plans), &file, false).map_err(|problems| problems.to_string())
}

/// Returns the smallest file with these lines in its zone.
fn with_lines(lines: &str) -> String {
    SMALLEST.replacen(RATE, &format!("{RATE}\n{lines}"), 1)
}

#[rustfmt::skip]
#[test]
fn no_problem_shows_what_may_be_a_key_where_keys_are_masked() {
    for wrong in [
        "plans = \"sk_live\"",
        "plans.sk_live = \"gold\"",
        "plans.gold = { sk_live = 1, keys = [\"a\"] }",
        "plans.gold = { keys = [\"a\"], rate = \"sk_live\" }",
        "plans.gold = { keys = [\"a\"], weight = \"sk_live\" }",
        "plans.gold = { keys = [{ sk_live = 1 }] }",
        "plans.gold = { keys = [\"a\"], sk_live = \"${NO_SUCH_VARIABLE}\" }",
    ] {
        let found = problems(&with_lines(&format!("mask_keys = true\n{wrong}")));
        assert!(!found.is_empty() && !found.contains("sk_live"), "{wrong}: {found}");
    }
}

#[test]
fn keys_come_from_the_file_itself_and_from_files_of_keys() {
    let plans = "plans.gold = { keys = [\"alice\"], file = \"gold.txt\", rate = \"100r/s\", weight = 8 }\n\
                 plans.silver = { file = \"silver.txt\" }";
    let files = [
        ("gold.txt", "# the best\nbob\ncarol # new\r\n\n"),
        ("silver.txt", "\u{feff}dave"),
    ];
    let settings = parse_beside(plans, &files).unwrap();
    let zone = &settings.zones[0];
    for (key, plan, rate) in [
        ("alice", Some("gold"), "100r/s"),
        ("bob", Some("gold"), "100r/s"),
        ("carol", Some("gold"), "100r/s"),
        ("dave", Some("silver"), "10r/s"),
        ("eve", None, "10r/s"),
    ] {
        assert_eq!(zone.plans.name_of(key.as_bytes()), plan, "{key}");
        assert_eq!(zone.rate_of(key.as_bytes()).to_string(), rate, "{key}");
    }
    assert_eq!(settings.named.len(), 2);
    assert_eq!(zone.plans.counts(), [3, 1]);
}

#[test]
fn a_problem_in_a_key_file_is_reported_with_its_line() {
    let plans = "plans.gold = { file = \"gold.txt\" }\nplans.silver = { file = \"silver.txt\" }";
    let masked = format!("mask_keys = true\n{plans}");
    let files = [("gold.txt", "a\nb\n"), ("silver.txt", "c\n\nb\n")];
    let hidden = "9:25: file: line 3 of the file: the key hidden by mask_keys";
    for (plans, begin) in [
        (plans, "8:25: file: silver.txt, line 3: the key \"b\""),
        (&masked, hidden),
    ] {
        let problems = parse_beside(plans, &files).unwrap_err();
        let (_, message) = problems.split_once("gateway.toml:").unwrap();
        let end = "is in the plans gold and silver; remove it from one";
        assert_eq!(message, format!("{begin} {end}"));
    }
}

#[test]
fn keys_that_are_masked_now_stay_hidden_whatever_the_new_file_says() {
    let masked = settings_of(&with_lines("mask_keys = true"));
    let plain = settings_of(SMALLEST);
    let plans = "plans.gold = { keys = [\"sk_live\"] }\nplans.b = { keys = [\"sk_live\"] }";
    for (mask, problem_count) in [
        ("", 1),
        ("mask_keys = false\n", 1),
        ("mask_key = true\n", 2),
    ] {
        let text = with_lines(&format!("{mask}{plans}"));
        let reload = |in_force| parse_after(in_force, &text, Path::new(PATH), false).unwrap_err();
        let found = reload(&masked);
        assert_eq!(found.problems.len(), problem_count, "{found}");
        let found = found.to_string();
        assert!(
            found.contains("the key hidden by mask_keys is in"),
            "{found}"
        );
        assert!(!found.contains("sk_live"), "{found}");
        let found = reload(&plain).to_string();
        assert!(found.contains("the key \"sk_live\" is in"), "{found}");
    }
}

#[test]
#[rustfmt::skip]
fn a_plan_changes_what_a_limit_lets_through() {
    let (token, window) = ("algorithm = \"token_bucket\"", "algorithm = \"fixed_window\"");
    // A line of the zone, the rest of the limit, a field of the plan, and the burst and delay of
    // its keys.
    for (zone, limit, plan, burst, delay) in [
        ("", ", burst = 20", "burst = 50", 50, Above(0)),
        ("", ", burst = 20, delay = 8", "burst = 5", 5, Above(5)),
        ("", ", burst = 20, nodelay = true", "rate = \"1r/s\"", 20, Never),
        (token, ", burst = 20", "burst = 50", 49, Never),
        (window, "", "rate = \"30r/s\"", 29, Never),
        (window, "", "weight = 2", 9, Never),
    ] {
        let text = with_lines(&format!("{zone}\nplans.gold = {{ keys = [\"a\"], {plan} }}"));
        let settings = settings_of(&text.replacen(", burst = 20", limit, 1));
        let zone = &settings.zones[0];
        let configured = settings.routes[0].limits[0].limit;
        let of_plan = zone.limit_of(b"a", configured);
        assert_eq!((of_plan.burst, of_plan.delay), (burst, delay), "{text}");
        assert_eq!(zone.limit_of(b"b", configured), configured);
    }
}

#[test]
#[rustfmt::skip]
fn plans_have_the_same_rates_until_a_rate_or_a_key_changes() {
    let zone = |rate: &str, plans: &str| {
        settings_with(RATE, &format!("rate = \"{rate}\"\n{plans}")).zones.remove(0)
    };
    let gold = |keys: &str, more: &str| format!("plans.gold = {{ keys = [{keys}]{more} }}");
    let before = zone("10r/s", &gold("\"a\"", ", rate = \"1r/s\""));
    for (is_same, after) in [
        (true, zone("10r/s", &gold("\"a\"", ", rate = \"1r/s\", burst = 9"))),
        (false, zone("10r/s", &gold("\"a\"", ", rate = \"2r/s\""))),
        (false, zone("10r/s", &gold("\"a\"", ""))),
        (false, zone("10r/s", &gold("\"b\"", ", rate = \"1r/s\""))),
        (false, zone("11r/s", &gold("\"a\"", ", rate = \"1r/s\""))),
        (false, zone("10r/s", "")),
    ] {
        assert_eq!(before.has_rates_of(&after), is_same, "{after:?}");
    }
}
