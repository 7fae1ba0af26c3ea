//! The advice for the keys of each plan.

use std::fmt::Write as _;

use super::{advise, fit, row, run, write};

/// A minute: three keys of which each comes so many times in each second, so far apart.
///
/// At two in each second `eve`, at once; at ten `alice`, in fives; at twenty `bob`, each on its own.
fn requests() -> Vec<(u64, &'static str)> {
    let mut requests = Vec::new();
    for second in 0..60 {
        let at = |part: u64| second * 1000 + part;
        requests.extend([(at(0), "eve"); 2]);
        requests.extend((0..10).map(|nth| (at(nth / 5 * 500), "alice")));
        requests.extend((0..20).map(|nth| (at(nth * 50), "bob")));
    }
    requests.sort_unstable();
    requests
}

/// The gateway's own log, with these plans of the keys.
fn own_log(plan: impl Fn(&str) -> Option<&'static str>) -> String {
    let mut log = String::new();
    for (at, key) in requests() {
        let (second, milli) = (at / 1000, at % 1000);
        let plan = plan(key).map_or_else(String::new, |plan| format!(",\"plan\":\"{plan}\""));
        writeln!(
            log,
            "{{\"time\":\"2026-11-01T09:00:{second:02}.{milli:03}Z\",\"client\":\"192.0.2.1\",\"method\":\"GET\",\
             \"target\":\"/?key={key}\",\"zone\":\"users\",\"key\":\"{key}\"{plan}}}"
        )
        .unwrap();
    }
    log
}

fn of_log(key: &str) -> Option<&'static str> {
    match key {
        "alice" => Some("gold"),
        "bob" => Some("silver"),
        _ => None,
    }
}

const GOLD: [&str; 6] = ["600", "31.2 %", "10", "100", "10r/s", "4"];
const SILVER: [&str; 6] = ["1200", "62.5 %", "20", "200", "20r/s", "0"];
const LINES: &str = "[zones.users.plans.gold]\nrate = \"10r/s\"\nburst = 4\n\n\
                     [zones.users.plans.silver]\nrate = \"20r/s\"\nburst = 0\n";

/// What is said of `eve`, the only key without a plan.
fn check_zone(report: &str) {
    let of_eve = fit(report, "all keys without a plan");
    assert_eq!(of_eve, ("2r/s", 1), "{report}");
    let keys = "120 requests of 1 keys without a plan ";
    assert!(report.contains(keys), "{report}");
}

#[test]
fn each_plan_of_the_own_log_is_judged_on_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "log.json", own_log(of_log));
    let report = advise(
        folder,
        &["--zone", "users", "--key", "$arg_key", "log.json"],
    );
    check_zone(&report);
    assert_eq!(row(&report, "plan gold"), GOLD, "{report}");
    assert_eq!(row(&report, "plan silver"), SILVER, "{report}");
    assert!(report.contains(LINES), "{report}");
    // All requests go to the origin, whatever their plan.
    assert!(report.contains("at most 32 requests came"), "{report}");

    let together = advise(folder, &["--key", "$arg_key", "log.json"]);
    assert!(together.contains("with --zone, each is judged on its own"));
    assert_eq!(fit(&together, "all keys").0, "20r/s", "{together}");
    assert!(!together.contains("\nplan "), "{together}");
    // A plan that only decided at the gate of the origin says nothing of the zone's keys.
    let at_gate = own_log(of_log).replace("\"}\n", "\",\"plan_zone\":\"other\"}\n");
    write(folder, "gate.json", at_gate);
    let report = advise(folder, &["--zone", "users", "gate.json"]);
    assert!(!report.contains("\nplan "), "{report}");
}

#[test]
fn with_a_file_any_log_is_judged_by_plan() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let plans = "[zones.users.plans.gold]\nkeys = [\"alice\"]\n[zones.users.plans.silver]\nfile = \"silver.txt\"\n";
    let file = format!(
        "[origins.app]\nservers = [\"http://127.0.0.1:9000\"]\n[zones.users]\nkey = \"$arg_key\"\nrate = \"1r/s\"\n\
         {plans}[[routes]]\npath = \"/\"\norigin = \"app\"\n"
    );
    write(folder, "gateway.toml", &file);
    write(folder, "silver.txt", "bob\n");
    // Logs that say nothing of plans: with the zone's keys, with what keys are made of, with keys alone.
    let own = own_log(|_| None);
    let other = own.replace(",\"zone\":\"users\"", "");
    let mut csv = String::from("time,key\n");
    for (at, key) in requests() {
        writeln!(csv, "{}.{:03},{key}", at / 1000, at % 1000).unwrap();
    }
    for (name, log) in [("own.json", own), ("other.json", other), ("log.csv", csv)] {
        write(folder, name, log);
        let report = advise(folder, &["-c", "gateway.toml", "--zone", "users", name]);
        check_zone(&report);
        assert_eq!(row(&report, "plan gold"), GOLD, "{report}");
        assert_eq!(row(&report, "plan silver"), SILVER, "{report}");
        assert!(
            report.contains("\n[zones.users]\nkey = \"$arg_key\"\n"),
            "{report}"
        );
        assert!(!report.contains("what --key says"), "{report}");
        // The file with these numbers is right.
        let better = file
            .replace(
                "keys = [\"alice\"]",
                "keys = [\"alice\"]\nrate = \"10r/s\"\nburst = 4",
            )
            .replace("rate = \"1r/s\"", "rate = \"2r/s\"");
        write(folder, "better.toml", better);
        let checked = run(folder, &["check", "-c", "better.toml"]);
        assert!(checked.status.success(), "{checked:?}");
    }

    for (arguments, wrong) in [
        (
            ["-c", "gateway.toml", "--zone", "user"],
            "gateway.toml has no zone user; it has: users",
        ),
        (
            ["-c", "none.toml", "--zone", "users"],
            "none.toml: cannot be read",
        ),
    ] {
        let output = run(
            folder,
            &[&["advise"], &arguments[..], &["log.csv"]].concat(),
        );
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains(wrong), "{told}");
    }
    let alone = run(folder, &["advise", "-c", "gateway.toml", "log.csv"]);
    assert!(!alone.status.success());
}

#[test]
fn where_each_key_has_a_plan_there_is_advice_for_the_plans_alone() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(
        folder,
        "log.json",
        own_log(|key| of_log(key).or(Some("silver"))),
    );
    let report = advise(folder, &["--zone", "users", "log.json"]);
    assert_eq!(row(&report, "plan gold"), GOLD, "{report}");
    assert_eq!(row(&report, "plan silver")[0], "1320", "{report}");
    assert!(!report.contains("Paste this"), "{report}");
    let lines = "[zones.users.plans.silver]\nrate = \"20r/s\"\nburst = 1\n";
    assert!(report.contains(lines), "{report}");
}

#[test]
fn plans_beyond_those_that_are_judged_count_as_none() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut log = String::new();
    for nth in 0..40 {
        writeln!(
            log,
            "{{\"time\":\"2026-11-01T09:00:{nth:02}Z\",\"zone\":\"users\",\"key\":\"k{nth}\",\"plan\":\"p{nth}\"}}"
        )
        .unwrap();
    }
    write(folder, "log.json", log);
    let report = advise(folder, &["--zone", "users", "log.json"]);
    assert!(
        report.contains("8 requests of 8 keys without a plan"),
        "{report}"
    );
    assert!(
        report.contains("\n8 requests were of more plans than"),
        "{report}"
    );
    assert_eq!(row(&report, "plan p31")[0], "1");
}

#[test]
fn a_file_with_learned_costs_is_told_that_each_request_counts_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "log", own_log(|_| None));
    let file = "[origins.app]\nservers = [\"http://127.0.0.1:9000\"]\nrate = \"10r/s\"\nmax_in_flight = 4\n\
        [zones.users]\nkey = \"$arg_key\"\nrate = \"1r/s\"\n[zones.others]\nkey = \"$arg_key\"\nrate = \"1r/s\"\n\
        [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{ zone = \"users\", burst = 99 }]\n\
        cost = { learn = \"time\", unit = \"10ms\", max = 64 }\n\
        [[routes]]\npath = \"/other\"\norigin = \"app\"\nlimits = [{ zone = \"others\", burst = 5 }]\n";
    write(folder, "gateway.toml", file);
    let said = |zone: &str| {
        let args = ["advise", "-c", "gateway.toml", "--zone", zone, "log"];
        String::from_utf8(run(folder, &args).stderr).unwrap()
    };
    let told = said("users");
    assert!(
        told.contains(
            "the cost of / is learned by a running gateway; this counts each request as 1"
        ),
        "{told}"
    );
    let told = said("others");
    assert!(!told.contains("learned"), "{told}");
}
