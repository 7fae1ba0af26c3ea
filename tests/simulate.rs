//! `drip simulate`, run as a user runs it.

mod gate;

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tempfile::TempDir;

struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let origin = "[origins.app]\nservers = [\"http://127.0.0.1:9000\"]\n";
        fs::write(
            folder.path().join("gateway.toml"),
            format!("{origin}{settings}"),
        )
        .unwrap();
        Self { folder }
    }

    fn simulate(&self, trace: impl AsRef<[u8]>) -> Output {
        let (file, path) = (
            self.folder.path().join("gateway.toml"),
            self.folder.path().join("trace"),
        );
        fs::write(&path, trace).unwrap();
        let mut drip = Command::new(env!("CARGO_BIN_EXE_drip"));
        let drip = drip.args(["simulate", "-c"]).arg(file).arg(path);
        drip.output().unwrap()
    }

    /// The rows after the header.
    fn rows(&self, trace: &str) -> Vec<String> {
        let output = self.simulate(trace);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines = text.lines().map(ToOwned::to_owned);
        assert_eq!(
            lines.next().unwrap(),
            "time,key,verdict,departure,delay,excess"
        );
        lines.collect()
    }
}

fn one_zone(rate: &str, limit: &str) -> Bench {
    Bench::new(&format!(
        "[zones.z]\nkey = \"$remote_addr\"\nrate = \"{rate}\"\n[[routes]]\npath = \"/\"\norigin = \"app\"\n\
         limits = [{{ zone = \"z\", {limit} }}]\n"
    ))
}

/// The departures of requests of one key, in seconds; R for a rejected one.
fn departures(rate: &str, limit: &str, arrivals: &str) -> String {
    let lines: Vec<String> = arrivals
        .split_whitespace()
        .map(|time| format!("{time},a"))
        .collect();
    let rows = one_zone(rate, limit).rows(&lines.join("\n"));
    let departure = |row: &String| match row.split(',').nth(3).unwrap() {
        "" => "R".to_owned(),
        time => time.trim_end_matches('0').trim_end_matches('.').to_owned(),
    };
    rows.iter().map(departure).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_vector_comes_out_as_nginx_has_it_without_its_rounding() {
    let tenths: Vec<String> = (1..=12)
        .map(|nth| (f64::from(nth) / 10.0).to_string())
        .collect();
    let bursts = "1 1 1 1 2 2 2 2 3 3 3 3";
    let delayed = format!("{}{} R", "0 ".repeat(9), tenths.join(" "));
    for (rate, limit, arrivals, expected) in [
        (
            "10r/s",
            "burst = 0",
            "0 0.1 0.19 0.2 0.2 0.25 0.3",
            "0 0.1 R 0.2 R R 0.3",
        ),
        ("1r/s", "burst = 2", bursts, "1 2 3 R 4 R R R 5 R R R"),
        (
            "1r/s",
            "burst = 2, nodelay = true",
            bursts,
            "1 1 1 R 2 R R R 3 R R R",
        ),
        (
            "1r/s",
            "burst = 2, delay = 1",
            bursts,
            "1 1 2 R 3 R R R 4 R R R",
        ),
        (
            "2r/s",
            "burst = 5",
            &"0 ".repeat(8),
            "0 0.5 1 1.5 2 2.5 R R",
        ),
        ("1r/m", "burst = 2", "0 0 0 0", "0 60 120 R"),
        ("30r/m", "burst = 2, delay = 1", "0 0 0 0.2", "0 0 2 R"),
        ("10r/s", "burst = 20, delay = 8", &"0 ".repeat(22), &delayed),
    ] {
        let departures = departures(rate, limit, arrivals);
        assert_eq!(departures, expected, "{rate}, {limit}: {arrivals}");
    }
}

#[test]
fn costs_of_the_route_or_of_the_trace_come_out_as_in_the_worked_example() {
    let zone = "[zones.z]\nkey = \"$remote_addr\"\nrate = \"10r/s\"\n";
    let route = |path: &str, cost: u32| {
        format!(
            "[[routes]]\npath = \"{path}\"\norigin = \"app\"\ncost = {cost}\n\
             limits = [{{ zone = \"z\", burst = 10 }}]\n"
        )
    };
    let bench = Bench::new(&(zone.to_owned() + &route("/", 1) + &route("/5", 5)));
    let departures = |trace: &str| -> Vec<String> {
        let rows = bench.rows(trace);
        let departure = |row: &String| row.split(',').nth(3).unwrap().to_owned();
        rows.iter().map(departure).collect()
    };
    let first = ["0.000000000", "0.100000000", "0.600000000", "0.700000000"];
    let last = ["", "0.800000000"];
    let wanted = [&first[..], &last[..]].concat();
    assert_eq!(departures("0,a\n0,a,/5\n0,a\n0,a\n0,a,/5\n0,a\n"), wanted);
    assert_eq!(
        departures("0,a\n0,a,/,5\n0,a\n0,a,/5,1\n0,a,,5\n0,a\n"),
        wanted
    );
}

#[test]
fn rows_tell_time_key_verdict_departure_delay_and_excess() {
    let rows = one_zone("10r/s", "burst = 1").rows("time,key\n1.5,a\n1.5,a\n1.5,a\n1.5,b\n");
    let expected = [
        "1.500000000,a,passed,1.500000000,0.000000000,0.000000000",
        "1.500000000,a,delayed,1.600000000,0.100000000,1.000000000",
        "1.500000000,a,rejected,,,2.000000000",
        "1.500000000,b,passed,1.500000000,0.000000000,0.000000000",
    ];
    assert_eq!(rows, expected);
}

const TWO_ZONES: &str = "[zones.key]\nkey = \"$remote_addr\"\nrate = \"1r/s\"\n\
    [zones.login]\nkey = \"$remote_addr\"\nrate = \"1r/m\"\n\
    [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{ zone = \"key\", burst = 3, nodelay = true }]\n\
    [[routes]]\npath = \"/login\"\norigin = \"app\"\n\
    limits = [{ zone = \"key\", burst = 3, nodelay = true }, { zone = \"login\", burst = 1 }]\n";

#[test]
fn a_rejection_by_one_zone_charges_none() {
    let login = "0,a,/login\n".repeat(5);
    let rows = Bench::new(TWO_ZONES).rows(&format!("{login}0,a,/\n0,a,/\n0,a,/\n"));
    let verdicts: Vec<&str> = rows
        .iter()
        .map(|row| row.split(',').nth(2).unwrap())
        .collect();
    let expected = [
        "passed", "delayed", "rejected", "rejected", "rejected", "passed", "passed", "rejected",
    ];
    assert_eq!(verdicts, expected);
}

#[test]
fn an_access_log_makes_its_own_keys() {
    let line = |client: &str, second: u32, path: &str| {
        format!(
            "{client} - - [21/Nov/2026:03:33:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 6 \"-\" \"curl\"\n"
        )
    };
    let log = [
        line("192.0.2.1", 1, "/%6Cogin"),
        line("192.0.2.1", 1, "/login"),
        line("192.0.2.2", 1, "/login"),
    ];
    let rows = Bench::new(TWO_ZONES).rows(&log.concat());
    let told: Vec<Vec<&str>> = rows
        .iter()
        .map(|row| row.split(',').skip(1).take(2).collect())
        .collect();
    assert_eq!(
        told,
        [
            ["192.0.2.1", "passed"],
            ["192.0.2.1", "delayed"],
            ["192.0.2.2", "passed"]
        ]
    );

    let json = "{\"time\":\"2026-11-21T03:33:01.5Z\",\"client\":\"192.0.2.1\",\"method\":\"GET\",\"target\":\"/x\",\
                \"status\":200,\"duration_seconds\":0.25}\n";
    let rows = Bench::new(TWO_ZONES).rows(json);
    assert_eq!(
        rows,
        ["1795231981.250000000,192.0.2.1,passed,1795231981.250000000,0.000000000,0.000000000"]
    );
}

#[test]
fn what_the_gateway_refuses_counts_for_nothing_and_arguments_are_read_decoded() {
    let bench = Bench::new(
        "[zones.z]\nkey = \"$arg_key\"\nrate = \"1r/m\"\n[[routes]]\npath = \"/\"\norigin = \"app\"\n\
         limits = [{ zone = \"z\", burst = 0 }]\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nmatch = { \"query:free\" = \"1\" }\n",
    );
    let log = |requests: &[&str]| -> String {
        let line = |request: &&str| {
            format!(
                "192.0.2.1 - - [21/Nov/2026:03:33:01 +0000] \"{request} HTTP/1.1\" 200 6 \"-\" \"curl\"\n"
            )
        };
        requests.iter().map(line).collect()
    };
    let refused = [
        "post /?key=a",
        "POST /?key=a&key=b",
        "POST /?key=a&free=0&free=1",
    ];
    let counted = ["POST /?%6Bey=a", "POST /?key=%61", "POST /"];
    let rows = bench.rows(&log(&[&refused[..], &counted[..]].concat()));
    let verdicts = rows.iter().map(|row| row.split(',').nth(2).unwrap());
    let expected = ["passed", "rejected", "passed"];
    assert_eq!(verdicts.collect::<Vec<_>>(), expected);
}

#[test]
fn an_escaped_key_of_the_gateways_own_log_is_shown_as_logged_and_has_its_plan() {
    let line = "{\"time\":\"2026-11-21T03:33:01Z\",\"client\":\"192.0.2.1\",\"target\":\"/x\",\"zone\":\"z\",\
                \"key\":\"a\\\\\\\\b\\\\x22\"}\n";
    let bench = Bench::new(
        "[zones.z]\nkey = \"$http_x_key\"\nrate = \"1r/s\"\n\
         [zones.z.plans.gold]\nkeys = ['a\\b\"']\nrate = \"100r/s\"\nburst = 5\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{ zone = \"z\", burst = 0 }]\n",
    );
    let rows = bench.rows(&line.repeat(2));
    let told: Vec<Vec<&str>> = rows.iter().map(|row| row.split(',').collect()).collect();
    assert_eq!(told[0][1..3], [r"a\\b\x22", "passed"]);
    assert_eq!(told[1][1..3], [r"a\\b\x22", "delayed"]);
}

#[test]
fn bad_lines_are_named_and_the_rest_goes_on() {
    let long = "x".repeat(3 << 20);
    let trace = format!("0,a\nnonsense\nx,b\n{long}\n1,a\n");
    let output = one_zone("1r/s", "burst = 0").simulate(trace);
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 3);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        told.contains("line 2: this is not time_seconds,key[,route_path[,cost]]"),
        "{told}"
    );
    assert!(told.contains("line 3: \"x\" is not a time"), "{told}");
    let long = "line 4: this line is longer than 1 MB";
    assert!(told.contains(long), "{told}");
    assert!(told.contains("3 lines could not be read"), "{told}");
}

#[test]
fn of_a_packed_trace_that_was_cut_short_what_there_is_is_told() {
    let bench = one_zone("1r/s", "burst = 0");
    let folder = bench.folder.path();
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(b"0,a\n0,a\n").unwrap();
    let mut cut = packer.finish().unwrap();
    cut.truncate(cut.len() - 8);
    fs::write(folder.join("cut.gz"), cut).unwrap();
    for args in [&["cut.gz"][..], &["--summary", "cut.gz"]] {
        let mut drip = Command::new(env!("CARGO_BIN_EXE_drip"));
        let drip = drip.current_dir(folder).arg("simulate").args(args);
        let output = drip.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(
            told.starts_with("cut.gz: ") && told.contains(", after line 2"),
            "{told}"
        );
        assert!(
            String::from_utf8(output.stdout)
                .unwrap()
                .contains("rejected")
        );
    }
}

/// The output of `drip simulate`, run in a folder.
fn said(folder: &Path, args: &[&str]) -> String {
    let mut drip = Command::new(env!("CARGO_BIN_EXE_drip"));
    let output = drip
        .current_dir(folder)
        .arg("simulate")
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_summary_counts_and_names_the_keys_that_are_limited() {
    let bench = one_zone("1r/s", "burst = 1");
    let folder = bench.folder.path();
    // a: one passes, one waits, one is rejected; b: one waits; c and d are not limited.
    fs::write(folder.join("trace"), "0,a\n0,a\n0,a\n0,b\n0,b\n5,c\n6,d\n").unwrap();
    let text = said(folder, &["--summary", "trace"]);
    for line in [
        "passed at once                       4 (57.1 %)",
        "delayed                              2 (28.6 %)",
        "rejected                             1 (14.3 %)",
        "2 of 4 keys are limited",
        "  a                                                1         1.000 s",
        "  b                                                0         1.000 s",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
    assert!(!text.contains("time,key,verdict"), "{text}");
    assert!(!text.contains("  c "), "{text}");
    // A client that gets 404 is no better off than one that is rejected.
    fs::write(folder.join("unrouted"), "0,a,x\n").unwrap();
    let unrouted = said(folder, &["--summary", "unrouted"]);
    assert!(
        unrouted.contains("  a                                                1"),
        "{unrouted}"
    );
    assert!(
        unrouted.contains("requests without a route count as rejected"),
        "{unrouted}"
    );
    assert_eq!(said(folder, &["--rows", "trace"]), said(folder, &["trace"]));
}

/// What the program prints if its standard output is a terminal.
fn said_on_terminal(folder: &Path, args: &[&str]) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
    let terminal = rustix::fs::open(&name, flags, rustix::fs::Mode::empty()).unwrap();
    let mut drip = Command::new(env!("CARGO_BIN_EXE_drip"));
    drip.arg("simulate").args(args).current_dir(folder);
    drip.stdout(terminal).stdin(Stdio::null());
    let mut process = drip.spawn().unwrap();
    // The test's own handle of the terminal, without which reading would end.
    drop(drip);
    let mut shown = Vec::new();
    // A terminal that nobody has open any more is an error to read, not an end.
    let _end = fs::File::from(master).read_to_end(&mut shown);
    assert!(process.wait().unwrap().success());
    String::from_utf8(shown).unwrap()
}

#[test]
fn a_terminal_gets_the_summary_and_a_pipe_gets_the_rows() {
    let bench = one_zone("1r/s", "burst = 1");
    let folder = bench.folder.path();
    fs::write(folder.join("trace"), "0,a\n0,a\n").unwrap();
    let shown = said_on_terminal(folder, &["trace"]);
    assert!(shown.contains("1 of 1 keys are limited"), "{shown}");
    assert!(!shown.contains("time,key,verdict"), "{shown}");
    let rows = said_on_terminal(folder, &["--rows", "trace"]);
    assert!(rows.starts_with("time,key,verdict"), "{rows}");
    assert!(said(folder, &["trace"]).starts_with("time,key,verdict"));
}

#[test]
fn rows_are_not_of_a_summary() {
    let bench = one_zone("1r/s", "burst = 1");
    let mut drip = Command::new(env!("CARGO_BIN_EXE_drip"));
    let drip = drip.args(["simulate", "--rows", "--summary", "trace"]);
    let output = drip.current_dir(bench.folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains("--rows"), "{complaint}");
}

#[test]
fn a_plot_changes_nothing_of_the_rows_and_is_the_same_each_time() {
    let bench = one_zone("10r/s", "burst = 5");
    let folder = bench.folder.path();
    let trace = "0,a\n".repeat(9);
    let rows = bench.rows(&trace).join("\n");
    let plotted = said(folder, &["--plot", "one.svg", "trace"]);
    assert_eq!(
        plotted,
        format!("time,key,verdict,departure,delay,excess\n{rows}\n")
    );
    said(folder, &["--plot", "two.svg", "trace"]);
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(read("one.svg"), read("two.svg"));
    assert!(read("one.svg").starts_with("<svg ") && read("one.svg").contains("requests waiting"));
    let mut drip = Command::new(env!("CARGO_BIN_EXE_drip"));
    let args = ["simulate", "--plot", "no/such/folder.svg", "trace"];
    let failed = drip.current_dir(folder).args(args).output().unwrap();
    assert_eq!(failed.status.code(), Some(1));
}

#[test]
fn nothing_readable_is_a_failure() {
    let bench = one_zone("1r/s", "burst = 0");
    assert_eq!(
        bench.simulate("nonsense\nmore of it\n").status.code(),
        Some(1)
    );
    assert_eq!(bench.simulate("").status.code(), Some(0));
    let mut drip = Command::new(env!("CARGO_BIN_EXE_drip"));
    drip.args(["simulate", "-c"])
        .arg(bench.folder.path().join("gateway.toml"));
    let missing = drip.arg("no such trace").output().unwrap();
    assert_eq!(missing.status.code(), Some(1));
}

#[test]
fn requests_that_stand_behind_later_ones_are_judged_at_the_time_of_those() {
    let bench = one_zone("1r/s", "burst = 0");
    let rows = bench.rows("5,a\n3,b\n6,a\n");
    assert!(rows[1].starts_with("5.000000000,b,passed"), "{rows:?}");
    let told = String::from_utf8(bench.simulate("5,a\n3,b\n6,a\n").stderr).unwrap();
    assert!(
        told.contains("1 requests stood behind later ones"),
        "{told}"
    );
}

#[test]
fn a_full_zone_forgets_the_least_recently_used_key_that_nobody_waits_for() {
    let bench = Bench::new(
        "[zones.z]\nkey = \"$remote_addr\"\nrate = \"1r/d\"\nmax_keys = 2\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{ zone = \"z\", burst = 9, nodelay = true }]\n\
         [[routes]]\npath = \"/wait\"\norigin = \"app\"\nlimits = [{ zone = \"z\", burst = 9 }]\n",
    );
    let excess = |trace: &str| -> Vec<String> {
        bench
            .rows(trace)
            .iter()
            .map(|row| row.rsplit(',').next().unwrap()[..1].to_owned())
            .collect()
    };
    assert_eq!(
        excess("0,a\n0,b\n0,a\n0,c\n0,a\n0,b\n"),
        ["0", "0", "1", "0", "2", "0"]
    );
    let waiting = bench.rows("0,a\n0,b\n0,a,/wait\n0,b,/wait\n0,c\n");
    assert!(waiting[4].contains(",rejected,"), "{waiting:?}");
}

/// Which requests of one key pass, with an algorithm where no request waits.
fn verdicts(zone: &str, arrivals: &[&str]) -> String {
    let bench = Bench::new(&format!(
        "[zones.z]\nkey = \"$remote_addr\"\n{zone}\n[[routes]]\npath = \"/\"\norigin = \"app\"\n\
         limits = [{{ zone = \"z\" }}]\n"
    ));
    let trace: Vec<String> = arrivals.iter().map(|time| format!("{time},a")).collect();
    let word = |row: String| match row.split(',').nth(2) {
        Some("passed") => 'P',
        Some("rejected") => 'R',
        _ => '?',
    };
    bench
        .rows(&trace.join("\n"))
        .into_iter()
        .map(word)
        .collect()
}

#[test]
fn the_worked_examples_of_the_other_algorithms_come_out() {
    let minute =
        |algorithm: &str, count: u32| format!("algorithm = \"{algorithm}\"\nrate = \"{count}r/m\"");
    // The bucket holds three tokens; one more comes 20 s after the first was taken.
    let bucket = minute("token_bucket", 3);
    assert_eq!(
        verdicts(&bucket, &["50", "50", "50", "51", "69", "70", "71"]),
        "PPPRRPR"
    );
    // Twenty in two seconds, across the edge of a minute.
    let edge: Vec<_> = ["59"; 11].into_iter().chain(["60"; 11]).collect();
    assert_eq!(
        verdicts(&minute("fixed_window", 10), &edge),
        "PPPPPPPPPPRPPPPPPPPPPR"
    );
    let log = minute("sliding_window_log", 2);
    assert_eq!(verdicts(&log, &["60", "80", "105", "145"]), "PPRP");
    // 88 in one minute and 12 in the next: 15 s into it 78 count, so 22 more pass.
    let counted: Vec<_> = ["1"; 88]
        .into_iter()
        .chain(["60"; 12])
        .chain(["75"; 24])
        .collect();
    let answers = verdicts(&minute("sliding_window_counter", 100), &counted);
    assert_eq!(&answers[100..], "PPPPPPPPPPPPPPPPPPPPPPRR");
    // 5 in one minute and 3 in the next: 30 % into it 6.5 count, which is below 7.
    let counted = ["1", "1", "1", "1", "1", "77", "77", "77", "78", "78"];
    assert_eq!(
        &verdicts(&minute("sliding_window_counter", 7), &counted)[8..],
        "PR"
    );
}
