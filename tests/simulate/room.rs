//! `drip simulate --visitors`: a crowd before a waiting room, on a virtual clock.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use super::said;

/// A visitor, as its row shows it.
#[derive(Clone, Debug)]
struct Row {
    time: f64,
    number: u64,
    outcome: String,
    told: Option<f64>,
    wait: Option<f64>,
    entered: Option<f64>,
    left: Option<f64>,
}

impl Row {
    /// When the visitor was called.
    fn called(&self) -> Option<f64> {
        self.wait.map(|wait| self.time + wait)
    }
}

/// A folder with `gateway.toml`, in which the origin `shop` has a room with these fields.
fn shop(room: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "gateway.toml", &[("shop", room)]);
    folder
}

/// Writes a file whose origins have rooms with these fields. An origin without fields has none.
fn write(folder: &Path, name: &str, rooms: &[(&str, &str)]) {
    let mut text = String::new();
    for (origin, room) in rooms {
        text.extend([format!(
            "[origins.{origin}]\nservers = [\"http://127.0.0.1:9000\"]\n"
        )]);
        if !room.is_empty() {
            text.extend([format!(
                "[origins.{origin}.room]\nsecret = \"0123456789abcdef\"\n{room}\n"
            )]);
        }
        text.extend([format!(
            "[[routes]]\npath = \"/{origin}/\"\norigin = \"{origin}\"\n"
        )]);
    }
    fs::write(folder.join(name), text).unwrap();
}

fn rows(folder: &TempDir, args: &[&str]) -> Vec<Row> {
    let text = said(folder.path(), args);
    let mut lines = text.lines();
    let head = "time,number,outcome,told_wait,true_wait,entered,left";
    assert_eq!(lines.next().unwrap(), head);
    lines.map(row).collect()
}

fn row(line: &str) -> Row {
    let cells: Vec<&str> = line.split(',').collect();
    let number = |cell: usize| cells[cell].parse().ok();
    Row {
        time: number(0).unwrap(),
        number: cells[1].parse().unwrap(),
        outcome: cells[2].to_owned(),
        told: number(3),
        wait: number(4),
        entered: number(5),
        left: number(6),
    }
}

/// The words of a line of a summary behind its title.
fn line(text: &str, title: &str) -> Vec<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(title));
    let line = line.unwrap_or_else(|| panic!("no {title:?} in\n{text}"));
    line.split_whitespace().map(ToOwned::to_owned).collect()
}

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut drip = Command::new(env!("CARGO_BIN_EXE_drip"));
    let drip = drip.current_dir(folder).arg("simulate").args(args);
    drip.output().unwrap()
}

#[test]
fn the_last_of_a_crowd_is_called_after_the_time_that_admit_needs() {
    let folder = shop("admit = \"10r/s\"");
    let crowd = ["--visitors", "1000"];
    let all = rows(&folder, &crowd);
    assert_eq!(all.len(), 1000);
    assert_eq!((all[0].number, &*all[0].outcome), (1, "walked_in"));
    for row in &all[1..] {
        let expected = f64::from(u32::try_from(row.number - 1).unwrap()) * 0.1;
        let (called, entered) = (row.called().unwrap(), row.entered.unwrap());
        assert!((called - expected).abs() < 1e-6, "{row:?}");
        // It asks again after 2 s at the earliest, and after a tenth of the time that is left.
        assert!(entered >= called && entered < called + 4.0, "{row:?}");
        let (told, wait) = (row.told.unwrap(), row.wait.unwrap());
        assert!((told - wait).abs() <= wait.max(2.0) * 0.25, "{row:?}");
        assert_eq!(row.outcome, "came");
    }
    let text = said(folder.path(), &[&crowd[..], &["--summary"]].concat());
    assert_eq!(line(&text, "visitors "), ["1000"]);
    assert_eq!(line(&text, "let in at once"), ["1", "(0.1", "%)"]);
    assert_eq!(line(&text, "waiting at most"), ["999"]);
    assert_eq!(line(&text, "turns lost"), ["0"]);
    assert_eq!(
        line(&text, "told at first, right within 25 %"),
        ["100.0", "%"]
    );
    let longest: f64 = line(&text, "longest")[0].parse().unwrap();
    assert!((99.9..104.0).contains(&longest), "{text}");
    let pace: f64 = line(&text, "let in a second")[0].parse().unwrap();
    assert!((9.5..=10.0).contains(&pace), "{text}");
    assert!(!text.contains("places"), "they are not bounded: {text}");
}

#[test]
fn a_place_is_free_once_its_visitor_has_asked_nothing_for_idle() {
    let folder = shop("sessions = 10\nidle = \"20s\"");
    // Visitors ask once.
    let all = rows(&folder, &["--visitors", "30", "--stay", "0"]);
    let mut ends: Vec<f64> = all.iter().map(|row| row.left.unwrap() + 20.0).collect();
    ends.sort_by(f64::total_cmp);
    let outcomes = all.iter().filter(|row| row.outcome == "walked_in");
    assert_eq!(outcomes.count(), 10);
    for (nth, row) in all.iter().enumerate().skip(10) {
        let end = ends[nth - 10];
        assert!((row.called().unwrap() - end).abs() < 1e-6, "{row:?}, {end}");
        assert_eq!(row.entered, row.left);
    }
    // One who stays for 50 s holds the place for 70.
    let one = shop("sessions = 1\nidle = \"20s\"");
    let all = rows(&one, &["--visitors", "2", "--stay", "50s"]);
    let end = all[0].left.unwrap() + 20.0;
    assert!(all[0].left.unwrap() > 1.0, "{all:?}");
    assert!((all[1].called().unwrap() - end).abs() < 1e-6, "{all:?}");
}

#[test]
fn visitors_who_never_come_back_lose_their_turns_and_nobody_else_does() {
    let folder = shop("sessions = 50\nidle = \"5s\"\nclaim = \"5s\"");
    let crowd = [
        "--visitors",
        "1500",
        "--within",
        "30s",
        "--stay",
        "10s",
        "--leave",
        "30%",
    ];
    let all = rows(&folder, &crowd);
    let count = |outcome: &str| all.iter().filter(|row| row.outcome == outcome).count();
    let (never, came) = (count("never_back"), count("came"));
    assert_eq!(never + came + count("walked_in"), 1500);
    assert!((390..510).contains(&never), "{never}");
    let mut called: Vec<_> = all
        .iter()
        .filter_map(|row| Some((row.number, row.called()?)))
        .collect();
    called.sort_by_key(|(number, _)| *number);
    assert!(called.windows(2).all(|pair| pair[0].1 <= pair[1].1));
    for row in all.iter().filter(|row| row.outcome == "never_back") {
        assert_eq!((row.entered, row.left), (None, None));
    }

    let text = said(folder.path(), &[&crowd[..], &["--summary"]].concat());
    assert_eq!(line(&text, "turns lost"), [never.to_string()]);
    assert!(!text.contains("by visitors who came back"), "{text}");
    // Stay and idle take 15 s, the way in 2 s of the others and 5 s of those who never come back.
    let share = |title: &str| line(&text, title)[0].parse::<f64>().unwrap();
    let used = share("places while somebody waits: used");
    let idle = share("  idle after the last request");
    let kept = share("  kept for those who are called");
    assert!((used - 2.0 * idle).abs() < 6.0, "{text}");
    assert!(
        (10.0..30.0).contains(&kept) && used + idle + kept > 99.0,
        "{text}"
    );
    let (told, polls) = (
        share("told at first, right within 25 %"),
        share("polls a second at most"),
    );
    assert!(told <= 100.0 && polls > 10.0 && polls < 1000.0, "{text}");
}

#[test]
fn nobody_is_called_before_the_room_opens_and_the_order_is_drawn_then() {
    let folder = shop("admit = \"10r/s\"\nopens = \"2026-12-01T10:00:00Z\"");
    let crowd = ["--visitors", "400", "--within", "100s"];
    let all = rows(&folder, &[&crowd[..], &["--early", "60s"]].concat());
    let early: Vec<_> = all.iter().filter(|row| row.time < 60.0).collect();
    assert!((200..280).contains(&early.len()), "{}", early.len());
    assert!(early.iter().all(|row| row.called().unwrap() >= 60.0));
    assert!(
        early
            .windows(2)
            .any(|pair| pair[0].called() > pair[1].called())
    );
    // Without --early it is open.
    assert_eq!(rows(&folder, &crowd)[0].outcome, "walked_in");
}

#[test]
fn a_run_ends_after_a_day() {
    let folder = shop("admit = \"1r/h\"");
    let crowd = ["--visitors", "100"];
    let all = rows(&folder, &crowd);
    let count = |outcome: &str| all.iter().filter(|row| row.outcome == outcome).count();
    // The one who is called after 24 hours comes too late.
    let counts = ["walked_in", "came", "waits", "never_back"].map(count);
    assert_eq!(counts, [1, 23, 76, 0]);
    let text = said(folder.path(), &[&crowd[..], &["--summary"]].concat());
    assert_eq!(line(&text, "waiting after a day")[0], "76");
}

#[test]
fn visitors_may_come_at_a_rate() {
    let folder = shop("sessions = 10");
    let all = rows(
        &folder,
        &["--visitors", "8r/s", "--within", "100s", "--stay", "1s"],
    );
    assert_eq!(all.len(), 800);
    let later = all.iter().filter(|row| row.time >= 50.0).count();
    assert!((350..450).contains(&later), "{later}");
    assert!(all.iter().is_sorted_by(|one, other| one.time <= other.time));
}

#[test]
fn rooms_of_several_files_are_compared_and_drawn() {
    let folder = shop("sessions = 10\nidle = \"10s\"");
    write(
        folder.path(),
        "other.toml",
        &[("shop", "sessions = 20\nidle = \"10s\"")],
    );
    let crowd = ["--visitors", "400", "--within", "10s", "--stay", "5s"];
    let against = ["--against", "other.toml", "--plot", "one.svg"];
    let text = said(folder.path(), &[&crowd[..], &against].concat());
    let heading = text.lines().find(|line| line.contains("gateway.toml"));
    assert!(heading.unwrap().ends_with("other.toml"), "{text}");
    assert_eq!(line(&text, "sessions"), ["10", "20"]);
    let longest = line(&text, "longest");
    let [one, other] = [0, 2].map(|word| longest[word].parse::<f64>().unwrap());
    assert!(other < one * 0.6 && other > one * 0.4, "{text}");

    said(
        folder.path(),
        &[&crowd[..], &["--plot", "two.svg"]].concat(),
    );
    said(
        folder.path(),
        &[&crowd[..], &["--plot", "again.svg"]].concat(),
    );
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(read("one.svg").contains("other.toml, visitors a second"));
    assert!(read("two.svg").starts_with("<svg ") && read("two.svg").contains("visitors waiting"));
    assert_eq!(read("two.svg"), read("again.svg"));
}

#[test]
fn a_file_without_the_room_that_is_meant_is_an_error_with_its_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let room = "sessions = 10";
    write(folder.path(), "none.toml", &[("shop", "")]);
    write(
        folder.path(),
        "two.toml",
        &[("shop", room), ("cart", room), ("blog", "")],
    );
    for (file, args, complaint) in [
        (
            "none.toml",
            &[][..],
            "none.toml: no origin has a waiting room; add [origins.shop.room]",
        ),
        (
            "two.toml",
            &[],
            "two.toml: several origins have a waiting room (shop, cart); name one with --room",
        ),
        (
            "two.toml",
            &["--room", "blog"],
            "origin blog has no waiting room; these have one: shop, cart",
        ),
        (
            "two.toml",
            &["--room", "cart", "--early", "1m"],
            "the room of cart has no opens",
        ),
        (
            "two.toml",
            &["--against", "none.toml", "--room", "cart"],
            "none.toml: no origin",
        ),
    ] {
        let output = run(
            folder.path(),
            &[&["-c", file, "--visitors", "10"], args].concat(),
        );
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(complaint), "{told}");
        assert!(output.stdout.is_empty());
    }
    let cart = ["-c", "two.toml", "--visitors", "10", "--room", "cart"];
    assert!(run(folder.path(), &cart).status.success());
}

#[test]
fn options_that_describe_no_crowd_are_refused() {
    let folder = shop("sessions = 10");
    for (args, status, complaint) in [
        (
            &["--visitors", "10r/s"][..],
            1,
            "10r/s needs the time in which visitors come",
        ),
        (
            &["--visitors", "1000r/s", "--within", "1h"],
            1,
            "is 3600000 visitors",
        ),
        (&["--visitors", "0"], 2, "from 1 to 1000000"),
        (&["--visitors", "many"], 2, "such as 50000"),
        (&["--visitors", "10", "--leave", "30"], 2, "a percentage is"),
        (
            &["--visitors", "10", "--stay", "long"],
            2,
            "such as 90s or 10m",
        ),
        (&["--visitors", "10", "trace.csv"], 2, "cannot be used with"),
        (&["--stay", "10s", "trace.csv"], 2, "cannot be used with"),
        (&["--room", "shop", "trace.csv"], 2, "cannot be used with"),
        (&["--room", "shop"], 2, "--visitors <COUNT>"),
        (&[], 2, "<TRACE>"),
    ] {
        let output = run(folder.path(), args);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{args:?}: {told}");
        assert!(told.contains(complaint), "{args:?}: {told}");
    }
}
