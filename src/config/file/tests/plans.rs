//! Tests of plans, and of their key files.

use std::fs;

use ::limit::Delay::{Above, Never};

use super::*;

const RATE: &str = "rate = \"10r/s\"";

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

fn in_folder(plans: &str, files: &[(&str, &str)]) -> Result<Settings, String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let text = SMALLEST.replacen(RATE, &format!("{RATE}\n{plans}"), 1);
    let parsed = parse(&text, &folder.path().join("gateway.toml"), false);
    parsed.map_err(|problems| problems.to_string())
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
        let text = SMALLEST.replacen(RATE, &format!("{RATE}\nmask_keys = true\n{wrong}"), 1);
        let found = problems(&text);
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
    let settings = in_folder(plans, &files).unwrap();
    let zone = &settings.zones[0];
    let name = |key: &str| {
        zone.plans
            .of(key.as_bytes())
            .map(|plan| plan.name.to_string())
    };
    for key in ["alice", "bob", "carol"] {
        assert_eq!(name(key).as_deref(), Some("gold"), "{key}");
        assert_eq!(zone.rate_of(key.as_bytes()).to_string(), "100r/s");
    }
    assert_eq!(name("dave").as_deref(), Some("silver"));
    assert_eq!(zone.rate_of(b"dave").to_string(), "10r/s");
    assert_eq!(name("eve"), None);
    assert_eq!(settings.named.len(), 2);
    assert_eq!(zone.plans.counts(), [3, 1]);
}

#[test]
fn a_problem_in_a_key_file_is_reported_with_its_line() {
    let plans = "plans.gold = { file = \"gold.txt\" }\nplans.silver = { file = \"silver.txt\" }";
    let masked = format!("mask_keys = true\n{plans}");
    let files = [("gold.txt", "a\nb\n"), ("silver.txt", "c\n\nb\n")];
    for (plans, expected) in [
        (plans, "8:25: file: silver.txt, line 3: the key \"b\""),
        (
            &masked,
            "9:25: file: line 3 of the file: the key hidden by mask_keys",
        ),
    ] {
        let problems = in_folder(plans, &files).unwrap_err();
        let (_, message) = problems.split_once("gateway.toml:").unwrap();
        let why = "is in the plans gold and silver; remove it from one";
        assert_eq!(message, format!("{expected} {why}"));
    }
}

#[test]
fn keys_that_are_masked_now_stay_hidden_whatever_the_new_file_says() {
    let with = |lines: &str| SMALLEST.replacen(RATE, &format!("{RATE}\n{lines}"), 1);
    let path = Path::new("/etc/drip/gateway.toml");
    let masked = parse(&with("mask_keys = true"), path, false).unwrap();
    let plain = parse(&with(""), path, false).unwrap();
    let plans = "plans.gold = { keys = [\"sk_live\"] }\nplans.b = { keys = [\"sk_live\"] }";
    for (mask, wrong) in [
        ("", 1),
        ("mask_keys = false\n", 1),
        ("mask_key = true\n", 2),
    ] {
        let text = with(&format!("{mask}{plans}"));
        let message = parse_after(&masked, &text, path, false).unwrap_err();
        assert_eq!(message.problems.len(), wrong, "{message}");
        let message = message.to_string();
        assert!(
            message.contains("the key hidden by mask_keys is in"),
            "{message}"
        );
        assert!(!message.contains("sk_live"), "{message}");
        let message = parse_after(&plain, &text, path, false).unwrap_err();
        assert!(
            message.to_string().contains("the key \"sk_live\" is in"),
            "{message}"
        );
    }
}

#[test]
fn a_plan_changes_what_a_limit_lets_through() {
    let limit = |zone: &str, limit: &str, plan: &str| {
        let text = SMALLEST
            .replacen(
                RATE,
                &format!("{RATE}\n{zone}\nplans.gold = {{ keys = [\"a\"], {plan} }}"),
                1,
            )
            .replacen(", burst = 20", limit, 1);
        let settings = parse(&text, Path::new("/etc/drip/gateway.toml"), false).unwrap();
        let configured = settings.routes[0].limits[0].limit;
        let limit = settings.zones[0].limit_of(b"a", configured);
        assert_eq!(settings.zones[0].limit_of(b"b", configured), configured);
        (limit.burst, limit.delay)
    };
    assert_eq!(limit("", ", burst = 20", "burst = 50"), (50, Above(0)));
    assert_eq!(
        limit("", ", burst = 20, delay = 8", "burst = 5"),
        (5, Above(5))
    );
    assert_eq!(
        limit("", ", burst = 20, nodelay = true", "rate = \"1r/s\""),
        (20, Never)
    );
    let token = "algorithm = \"token_bucket\"";
    assert_eq!(limit(token, ", burst = 20", "burst = 50"), (49, Never));
    let window = "algorithm = \"fixed_window\"";
    assert_eq!(limit(window, "", "rate = \"30r/s\""), (29, Never));
    assert_eq!(limit(window, "", "weight = 2"), (9, Never));
}

#[test]
#[rustfmt::skip]
fn plans_have_the_same_rates_until_a_rate_or_a_key_changes() {
    let zone = |rate: &str, plans: &str| {
        let text = SMALLEST.replacen(RATE, &format!("rate = \"{rate}\"\n{plans}"), 1);
        let settings = parse(&text, Path::new("/etc/drip/gateway.toml"), false).unwrap();
        settings.zones[0].clone()
    };
    let gold = |keys: &str, more: &str| format!("plans.gold = {{ keys = [{keys}]{more} }}");
    let before = zone("10r/s", &gold("\"a\"", ", rate = \"1r/s\""));
    for (same, after) in [
        (true, zone("10r/s", &gold("\"a\"", ", rate = \"1r/s\", burst = 9"))),
        (false, zone("10r/s", &gold("\"a\"", ", rate = \"2r/s\""))),
        (false, zone("10r/s", &gold("\"a\"", ""))),
        (false, zone("10r/s", &gold("\"b\"", ", rate = \"1r/s\""))),
        (false, zone("11r/s", &gold("\"a\"", ", rate = \"1r/s\""))),
        (false, zone("10r/s", "")),
    ] {
        assert_eq!(before.has_rates_of(&after), same, "{after:?}");
    }
}
