//! Tests of `drip simulate` with a gate before the origin: the documented examples.

use std::fmt::Write;

use super::{Bench, said};
use crate::support::assert_contains;

/// A row of the output.
#[derive(Debug)]
struct Row {
    verdict: String,
    departure: Option<f64>,
    delay: Option<f64>,
    at_gate: Option<f64>,
    rejected: String,
}

/// Returns an origin with these fields, a route to it, and a zone that limits nothing.
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
        verdict: cells[2].to_owned(),
        departure: number(3),
        delay: number(4),
        at_gate: number(6),
        rejected: cells[7].to_owned(),
    }
}

/// Returns lines at one time, one for each letter.
fn at(time: &str, keys: &str) -> String {
    keys.chars().fold(String::new(), |mut text, key| {
        writeln!(text, "{time},{key}").unwrap();
        text
    })
}

#[test]
fn a_row_has_the_wait_at_the_gate_and_the_reason_of_a_rejection() {
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
fn the_wait_in_the_zones_and_the_wait_at_the_gate_count_together() {
    let delay = |max_wait: &str| {
        let limit =
            format!("limits = [{{ zone = \"key\", burst = 5 }}]\nmax_wait = \"{max_wait}\"");
        let bench = zone_and_gate("rate = \"4r/s\"", &limit);
        let received = rows(&bench, &at("0", "aa"));
        (
            received[1].delay,
            received[1].at_gate,
            received[1].rejected.clone(),
        )
    };
    // The request waits 0.1 s for its slot in the zone, and then for the gate's slot at 0.25 s.
    assert_eq!(delay("250ms"), (Some(0.25), Some(0.15), String::new()));
    assert_eq!(delay("249ms"), (None, Some(0.0), "max_wait".to_owned()));
}

/// Returns a zone in front of the gate, and a second origin without a gate.
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
    let received: Vec<(Option<f64>, Option<f64>, &str)> = rows
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
    assert_eq!(received, expected);
}

#[test]
fn a_dry_run_ignores_the_zones_but_not_the_gate() {
    let limit = "limits = [{ zone = \"key\", burst = 1 }]\nmax_wait = \"10ms\"\ndry_run = true";
    let bench = zone_and_gate("rate = \"1r/s\"\nmax_queue = 2", limit);
    let rows = rows(&bench, &at("0", "aaaa"));
    let received: Vec<(&str, Option<f64>)> = rows
        .iter()
        .map(|row| (row.verdict.as_str(), row.departure))
        .collect();
    let expected = [
        ("passed", Some(0.0)),
        ("rejected_dry_run", Some(1.0)),
        ("rejected_dry_run", Some(2.0)),
        ("rejected", None),
    ];
    assert_eq!(received, expected);
    assert_eq!(rows[3].rejected, "max_queue");
}

#[test]
fn a_permit_is_held_for_the_logged_time_at_the_origin() {
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
    let received = rows(
        &bench,
        &[slow(1), slow(2), slow(3), line(0, "\"status\":200")].concat(),
    );
    let delays: Vec<f64> = received.iter().filter_map(|row| row.delay).collect();
    assert_eq!(delays, [0.0, 0.25, 0.75, 1.5]);

    let output = bench.simulate(at("0", "abc"));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches(",passed,").count(), 3);
    let received = String::from_utf8(output.stderr).unwrap();
    let expected = "3 requests have no time at the origin in the trace: they hold no permit of \
                    max_in_flight or in_flight\n";
    assert_eq!(received, expected);
}

#[test]
fn running_requests_hold_the_permits_of_a_key_for_the_logged_time() {
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
    let received: Vec<(&str, &str)> = text
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
        // A permit would be free only at 0.75 s.
        ("rejected", ""),
        // The queue is full.
        ("rejected", ""),
        ("passed", "0.000000000"),
    ];
    assert_eq!(received, expected);
}

#[test]
fn a_summary_has_the_rejections_of_a_gate() {
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
    let received = said(&learned);
    let note = "gateway.toml: the cost of / is learned by a running gateway, not by this replay";
    assert_contains!(received, note);
    let departures = |bench: &Bench| -> Vec<Option<f64>> {
        let rows = rows(bench, "0,a,/,2\n0,a\n0,a\n");
        rows.iter().map(|row| row.departure).collect()
    };
    let known = file("");
    assert_eq!(departures(&learned), [Some(0.0), Some(2.0), Some(3.0)]);
    assert_eq!(departures(&known), departures(&learned));
    let received = said(&known);
    assert!(!received.contains("learned"), "{received}");
}
