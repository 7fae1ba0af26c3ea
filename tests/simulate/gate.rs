//! `drip simulate` with a gate in front of the origin: the worked examples of the gate.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Bench, said};

/// A row of the output.
#[derive(Debug)]
struct Row {
    key: String,
    verdict: String,
    departure: Option<f64>,
    delay: Option<f64>,
    at_gate: Option<f64>,
    rejected: String,
}

/// An origin with these fields, a route to it, and a zone of keys that limits nothing.
fn gate(origin: &str) -> Bench {
    Bench::new(&format!(
        "{origin}\n[zones.key]\nkey = \"$remote_addr\"\nrate = \"1000000r/s\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n"
    ))
}

fn rows(bench: &Bench, trace: &str) -> Vec<Row> {
    let output = bench.simulate(trace);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    let head = "time,key,verdict,departure,delay,excess,origin_queue,origin_rejected";
    assert_eq!(lines.next().unwrap(), head);
    lines.map(row).collect()
}

fn row(line: &str) -> Row {
    let cells: Vec<&str> = line.split(',').collect();
    let number = |cell: usize| cells[cell].parse().ok();
    Row {
        key: cells[1].to_owned(),
        verdict: cells[2].to_owned(),
        departure: number(3),
        delay: number(4),
        at_gate: number(6),
        rejected: cells[7].to_owned(),
    }
}

/// The keys in the order in which they leave, each with its time.
fn departures(rows: &[Row]) -> Vec<(f64, &str)> {
    let left = |row: &'_ Row| row.departure;
    let mut all: Vec<_> = rows
        .iter()
        .filter_map(|row| Some((left(row)?, row.key.as_str())))
        .collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    all
}

fn order(rows: &[Row]) -> String {
    departures(rows).iter().map(|(_, key)| *key).collect()
}

/// Lines at one moment, a letter each.
fn at(time: &str, keys: &str) -> String {
    keys.chars().fold(String::new(), |mut text, key| {
        writeln!(text, "{time},{key}").unwrap();
        text
    })
}

/// Steady streams of requests a second, one for each key, for so many seconds.
fn streams(demands: &[u32], seconds: u32) -> String {
    let mut all = Vec::new();
    for (key, demand) in demands.iter().enumerate() {
        let step = 1_000_000 / demand;
        let of_key = |nth| (u64::from(nth) * u64::from(step) + key as u64, key);
        all.extend((0..demand * seconds).map(of_key));
    }
    all.sort_unstable();
    all.iter().fold(String::new(), |mut text, (micros, key)| {
        writeln!(
            text,
            "{}.{:06},k{key}",
            micros / 1_000_000,
            micros % 1_000_000
        )
        .unwrap();
        text
    })
}

#[test]
fn a_row_tells_how_long_a_request_waits_at_the_gate_and_why_it_is_rejected_there() {
    let bench = gate("rate = \"10r/s\"\nmax_queue = 1\nqueue_timeout = \"50ms\"");
    let output = bench.simulate("1.5,a\n1.5,b\n1.5,c\n1.56,d\n");
    let expected = "time,key,verdict,departure,delay,excess,origin_queue,origin_rejected\n\
        1.500000000,a,passed,1.500000000,0.000000000,0.000000000,0.000000000,\n\
        1.500000000,b,rejected,,,0.000000000,0.000000000,timeout\n\
        1.500000000,c,rejected,,,0.000000000,0.000000000,timeout\n\
        1.560000000,d,delayed,1.600000000,0.040000000,0.000000000,0.040000000,\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn keys_of_one_instant_leave_as_the_worked_example_says() {
    let bench = Bench::new(
        "rate = \"10r/s\"\nshare = \"key\"\n\
         [zones.key]\nkey = \"$remote_addr\"\nrate = \"1000000r/s\"\n\
         [zones.key.plans.gold]\nkeys = [\"a\"]\nweight = 3\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n",
    );
    // Much later, nothing of the first is left.
    let trace = at("0", "aaaaaaaaabbbccc") + &at("60", "abcaa");
    let found = order(&rows(&bench, &trace));
    assert_eq!(found, "abcaabcaaabcaaa".to_owned() + "abcaa");
    // Without a share the first that comes is the first that leaves.
    let bench = gate("rate = \"10r/s\"");
    assert_eq!(order(&rows(&bench, &at("0", "xaaabcabbb"))), "xaaabcabbb");
}

#[test]
fn a_flood_alone_takes_half_the_queue_and_leaves_room_for_others() {
    let bench = gate(
        "rate = \"1r/h\"\nshare = \"key\"\nqueue = 1000\nmax_queue = 1000\nqueue_timeout = \"2000h\"",
    );
    let waiting = |keys: &str, queue_of_nine: bool| -> Vec<usize> {
        let bench = if queue_of_nine {
            &gate(
                "rate = \"1r/h\"\nshare = \"key\"\nqueue = 100\nmax_queue = 1000\nqueue_timeout = \"2000h\"",
            )
        } else {
            &bench
        };
        let rows = rows(bench, &(at("0", "x") + &at("0", &keys.repeat(1500))));
        let mut counts = BTreeMap::new();
        for row in rows.iter().skip(1) {
            let waits = row.at_gate > Some(0.0);
            assert!(waits || row.rejected == "queue" || row.rejected == "max_queue");
            *counts.entry(&row.key).or_default() += usize::from(waits);
        }
        counts.into_values().collect()
    };
    assert_eq!(waiting("a", false), [500]);
    assert_eq!(waiting("ab", false), [334, 333]);
    assert_eq!(waiting("abcdefghi", false), [100; 9]);
    assert_eq!(waiting("abcdefghi", true), [100; 9]);
}

#[test]
fn the_predicted_wait_at_the_gate_counts_for_max_wait() {
    let bench = |max_wait: &str| {
        Bench::new(&format!(
            "rate = \"10r/s\"\nshare = \"key\"\n\
             [zones.key]\nkey = \"$remote_addr\"\nrate = \"1000000r/s\"\n\
             [[routes]]\npath = \"/\"\norigin = \"app\"\n\
             [[routes]]\npath = \"/short\"\norigin = \"app\"\nmax_wait = \"{max_wait}\"\n"
        ))
    };
    // The next slot is due in 0.1 s. Of five of `a` and two of `b`, two leave before `c`.
    let trace = at("0", "xaaaaabb") + "0,c,/short\n";
    let last = |max_wait: &str, key: &str| {
        let trace = trace.replace(",c,", &format!(",{key},"));
        rows(&bench(max_wait), &trace).pop().unwrap()
    };
    assert_eq!(last("300ms", "c").delay, Some(0.3));
    assert_eq!(last("299ms", "c").rejected, "max_wait");
    assert_eq!(last("800ms", "a").delay, Some(0.8));
    assert_eq!(last("799ms", "a").rejected, "max_wait");
}

#[test]
fn the_wait_in_the_zones_and_the_wait_at_the_gate_count_together() {
    let delay = |max_wait: &str| {
        let limit =
            format!("limits = [{{ zone = \"key\", burst = 5 }}]\nmax_wait = \"{max_wait}\"");
        let bench = zone_and_gate("rate = \"4r/s\"", &limit);
        let told = rows(&bench, &at("0", "aa"));
        (told[1].delay, told[1].at_gate, told[1].rejected.clone())
    };
    // It waits 0.1 s for its turn, and then for the slot at 0.25 s.
    assert_eq!(delay("250ms"), (Some(0.25), Some(0.15), String::new()));
    assert_eq!(delay("249ms"), (None, Some(0.0), "max_wait".to_owned()));
}

/// A zone in front of the gate, and a second origin without a gate.
fn zone_and_gate(origin: &str, limit: &str) -> Bench {
    Bench::new(&format!(
        "{origin}\n[origins.free]\nservers = [\"http://127.0.0.1:9001\"]\n\
         [zones.key]\nkey = \"$remote_addr\"\nrate = \"10r/s\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n{limit}\n\
         [[routes]]\npath = \"/free\"\norigin = \"free\"\n\
         limits = [{{ zone = \"key\", burst = 5 }}]\n"
    ))
}

#[test]
fn the_zones_give_back_what_the_gate_rejects_and_those_behind_move_up() {
    let limit = "limits = [{ zone = \"key\", burst = 5 }]";
    let bench = zone_and_gate("rate = \"1r/s\"\nmax_queue = 1", limit);
    // The second waits for the slot at 1 s. So the third finds no room when its turn comes.
    let rows = rows(&bench, &(at("0", "aaaa") + "0,a,/free\n0.25,a,/free\n"));
    let told: Vec<(Option<f64>, Option<f64>, &str)> = rows
        .iter()
        .map(|row| (row.departure, row.at_gate, row.rejected.as_str()))
        .collect();
    let expected = [
        (Some(0.0), Some(0.0), ""),
        (Some(1.0), Some(0.9), ""),
        (None, Some(0.0), "max_queue"),
        (None, Some(0.0), "max_queue"),
        // Two charges less: it was due at 0.4 s. It moves up when they are given back, at 0.2 s.
        (Some(0.2), None, ""),
        (Some(0.3), None, ""),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_hopeless_request_is_charged_nowhere() {
    let limit = "limits = [{ zone = \"key\", burst = 5 }]";
    let bench = zone_and_gate("rate = \"1r/s\"\nmax_queue = 1", limit);
    let rows = rows(&bench, &(at("0", "xy") + &at("0", "aaa") + "0,a,/free\n"));
    assert!(rows[2..5].iter().all(|row| row.rejected == "max_queue"));
    assert_eq!(rows[5].verdict, "passed");
}

#[test]
fn a_dry_run_ignores_the_zones_but_not_the_gate() {
    let limit = "limits = [{ zone = \"key\", burst = 1 }]\nmax_wait = \"10ms\"\ndry_run = true";
    let bench = zone_and_gate("rate = \"1r/s\"\nmax_queue = 2", limit);
    let rows = rows(&bench, &at("0", "aaaa"));
    let told: Vec<(&str, Option<f64>)> = rows
        .iter()
        .map(|row| (row.verdict.as_str(), row.departure))
        .collect();
    let expected = [
        ("passed", Some(0.0)),
        ("rejected_dry_run", Some(1.0)),
        ("rejected_dry_run", Some(2.0)),
        ("rejected", None),
    ];
    assert_eq!(told, expected);
    assert_eq!(rows[3].rejected, "max_queue");
}

#[test]
fn a_place_is_held_for_the_time_at_the_origin_that_the_log_tells() {
    let line = |milli: u32, at_origin: &str| {
        format!("{{\"msec\":1000.{milli:03},\"remote_addr\":\"192.0.2.1\",{at_origin}}}\n")
    };
    let bench = gate("max_in_flight = 1");
    // All came at 1000 s. The log has them by their ends.
    let slow = |nth: u32| {
        line(
            250 * nth,
            &format!("\"request_time\":{}", f64::from(nth) / 4.0),
        )
    };
    let told = rows(
        &bench,
        &[slow(1), slow(2), slow(3), line(0, "\"status\":200")].concat(),
    );
    let delays: Vec<f64> = told.iter().filter_map(|row| row.delay).collect();
    assert_eq!(delays, [0.0, 0.25, 0.75, 1.5]);

    let output = bench.simulate(at("0", "abc"));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches(",passed,").count(), 3);
    let told = String::from_utf8(output.stderr).unwrap();
    let expected = "3 requests have no time at the origin in the trace: they hold no place of \
                    max_in_flight or in_flight\n";
    assert_eq!(told, expected);
}

#[test]
fn a_request_that_waits_in_one_zone_holds_no_place_in_another() {
    let bench = Bench::new(
        "[zones.all]\nkey = \"$request_method\"\nrate = \"none\"\n\
         [zones.client]\nkey = \"$remote_addr\"\nrate = \"none\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n\
         limits = [{ zone = \"all\", burst = 9, in_flight = 2 }, \
         { zone = \"client\", burst = 9, in_flight = 1 }]\n",
    );
    // All come at 1000 s, and run for a quarter of a second.
    let line = |key: u32| {
        format!(
            "{{\"msec\":1000.250,\"remote_addr\":\"192.0.2.{key}\",\
             \"request_method\":\"GET\",\"request_time\":0.25}}\n"
        )
    };
    let output = bench.simulate([line(1), line(1), line(1), line(2)].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    let delay = |line: &str| line.split(',').nth(4)?.parse::<f64>().ok();
    let delays: Vec<_> = text.lines().skip(1).map(delay).collect();
    assert_eq!(delays, [0.0, 0.25, 0.5, 0.0].map(Some));
}

#[test]
fn running_requests_of_a_key_hold_its_places_for_the_time_that_the_log_tells() {
    let bench = Bench::new(
        "[zones.key]\nkey = \"$remote_addr\"\nrate = \"none\"\n[[routes]]\npath = \"/\"\n\
         origin = \"app\"\nmax_wait = \"500ms\"\n\
         limits = [{ zone = \"key\", burst = 2, in_flight = 1 }]\n",
    );
    // All come at 1000 s, and each runs longer than the one before.
    let line = |nth: u32, key: u32| {
        let (end, span) = (250 * nth, f64::from(nth) / 4.0);
        format!(
            "{{\"msec\":1000.{end:03},\"remote_addr\":\"192.0.2.{key}\",\"request_time\":{span}}}\n"
        )
    };
    let trace = [line(1, 1), line(2, 1), line(3, 1), line(3, 1), line(3, 2)].concat();
    let output = bench.simulate(trace);
    let text = String::from_utf8(output.stdout).unwrap();
    let told: Vec<(&str, &str)> = text
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            (cells[2], cells[4])
        })
        .collect();
    let expected = [
        ("passed", "0.000000000"),
        ("delayed", "0.250000000"),
        // Its place would be free at 0.75 s.
        ("rejected", ""),
        // As many wait as may.
        ("rejected", ""),
        ("passed", "0.000000000"),
    ];
    assert_eq!(told, expected);
}

#[test]
fn rows_stay_in_the_order_of_the_lines() {
    let bench = gate("rate = \"100r/s\"\nshare = \"key\"");
    let trace = streams(&[300, 7, 40], 3);
    let rows = rows(&bench, &trace);
    let keys = rows.iter().map(|row| row.key.as_str());
    let lines = trace.lines().map(|line| line.split_once(',').unwrap().1);
    assert!(keys.eq(lines));
}

#[test]
fn a_summary_tells_what_a_gate_rejects() {
    let bench = gate("rate = \"10r/s\"\nmax_queue = 2");
    let folder = bench.folder.path();
    std::fs::write(folder.join("trace"), at("0", "aabbc")).unwrap();
    let text = said(folder, &["--summary", "trace"]);
    for (begin, count) in [("passed at once", "1"), ("  by an origin's gate", "2")] {
        let line = text.lines().find_map(|line| line.strip_prefix(begin));
        let line = line.unwrap_or_else(|| panic!("{text}")).trim();
        assert!(line.starts_with(&format!("{count} (")), "{text}");
    }
    let plotted = said(folder, &["--plot", "flow.svg", "trace"]);
    assert_eq!(plotted.lines().count(), 6);
}

#[test]
fn costs_that_are_learned_are_not_and_it_says_so() {
    let file = |cost: &str| {
        Bench::new(&format!(
            "rate = \"1r/s\"\nmax_in_flight = 4\n[[routes]]\npath = \"/\"\norigin = \"app\"\n{cost}\n"
        ))
    };
    let learned = file("cost = { learn = \"time\", unit = \"10ms\", max = 64 }");
    let said = |bench: &Bench| {
        let output = bench.simulate("0,a\n");
        String::from_utf8(output.stderr).unwrap()
    };
    let told = said(&learned);
    assert!(
        told.contains(
            "gateway.toml: the cost of / is learned by a running gateway, not by this replay"
        ),
        "{told}"
    );
    let departures = |bench: &Bench| -> Vec<Option<f64>> {
        let rows = rows(bench, "0,a,/,2\n0,a\n0,a\n");
        rows.iter().map(|row| row.departure).collect()
    };
    let known = file("");
    assert_eq!(departures(&learned), [Some(0.0), Some(2.0), Some(3.0)]);
    assert_eq!(departures(&known), departures(&learned));
    let told = said(&known);
    assert!(!told.contains("learned"), "{told}");
}
