//! Tests of `drip demo`, run as a user runs it.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{assert_contains, fetch};

/// Maximum wait for a line, long enough on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

struct Demo {
    process: KillOnDrop,
    lines: Receiver<String>,
}

impl Demo {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_drip"));
        command.arg("demo").args(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let (process, lines) = start(&mut command);
        Self { process, lines }
    }

    /// Returns the first line that `expected` accepts.
    fn find<T>(&self, mut expected: impl FnMut(&str) -> Option<T>) -> T {
        let mut seen = Vec::new();
        for _ in 0..60 {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                break;
            };
            if let Some(found) = expected(&line) {
                return found;
            }
            seen.push(line);
        }
        panic!("not found in:\n{}", seen.join("\n"));
    }

    fn find_text(&self, text: &str) {
        self.find(|line| line.contains(text).then_some(()));
    }
}

/// A process that does not outlive its test.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program. Also returns a channel with each line that it prints.
fn start(demo: &mut Command) -> (KillOnDrop, Receiver<String>) {
    let mut process = demo.spawn().unwrap();
    let (line_sender, lines) = mpsc::channel();
    let stdout: ChildStdout = process.stdout.take().unwrap();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if line_sender.send(line).is_err() {
                return;
            }
        }
    });
    (KillOnDrop(process), lines)
}

fn interrupt(process: &mut Child) -> ExitStatus {
    kill_process(Pid::from_child(process), Signal::INT).unwrap();
    ended(process)
}

fn ended(process: &mut Child) -> ExitStatus {
    for _ in 0..100 {
        if let Some(status) = process.try_wait().unwrap() {
            return status;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("the demo still runs");
}

/// Parses the line of a second: departures, gap in milliseconds, rate in force.
fn second(line: &str) -> Option<(u32, Option<f64>, String)> {
    let words = line.split_whitespace().collect::<Vec<_>>();
    words.first()?.strip_suffix('s')?.parse::<u32>().ok()?;
    Some((
        words.get(6)?.parse().ok()?,
        words.get(7)?.parse().ok(),
        (*words.last()?).to_owned(),
    ))
}

/// Returns the file that the demo wrote, from the line that says where to change the rate.
fn own_file(line: &str) -> Option<PathBuf> {
    let (location, _) = line.trim().split_once("  rate = \"10r/s\"")?;
    let (file, line) = location.rsplit_once(':')?;
    assert!(line.parse::<u32>().is_ok(), "{location}");
    Some(PathBuf::from(file))
}

#[test]
fn it_shows_the_pace_and_how_it_changes_until_it_is_interrupted() {
    let mut demo = Demo::start(&[]);
    let page = demo.find(|line| {
        let (_, page) = line.split_once(" is the gateway, http://")?;
        Some(page.split_once("/ its live page")?.0.to_owned())
    });
    let file = demo.find(own_file);
    for _ in 0..3 {
        let (left, gap, rate) = demo.find(second);
        let gap = gap.expect("a request waited");
        let is_paced = (8..=12).contains(&left) && (90.0..110.0).contains(&gap);
        assert!(is_paced, "{left}, {gap} ms");
        assert_eq!(rate, "10r/s");
    }
    assert!(fetch(page.parse().unwrap(), "/").text().contains("<html"));
    // Another demo finds other ports.
    let other = Demo::start(&[]);
    other.find(second);

    let text = fs::read_to_string(&file).unwrap();
    let set_rate = |rate| fs::write(&file, text.replacen("10r/s", rate, 1)).unwrap();
    set_rate("20r/s");
    demo.find_text(" was saved and is in force: 10r/s is now 20r/s");
    demo.find(|line| {
        let (_, gap, rate) = second(line)?;
        (rate == "20r/s" && (45.0..55.0).contains(&gap?)).then_some(())
    });
    set_rate("nonsense");
    // Kept to the end: the gateway writes more.
    let mut stderr = BufReader::new(demo.process.0.stderr.take().unwrap());
    let mut complaint = String::new();
    stderr.read_line(&mut complaint).unwrap();
    assert_contains!(complaint, "gateway.toml:17:8: rate");

    assert!(interrupt(&mut demo.process.0).success());
    demo.find(|line| (line.contains(" arrived, ") && line.contains(" rejected")).then_some(()));
    demo.find_text("drip demo --scene fair");
    demo.find_text("`drip init`");
    assert!(!file.exists());
}

/// Parses the results of the light clients: answers, rejections, median and worst wait in ms.
fn light(lines: &[String], part: &str) -> Option<[u32; 4]> {
    let line = lines.iter().find(|line| line.starts_with(part))?;
    let numbers = line.split(|c: char| !c.is_ascii_digit());
    let numbers: Vec<u32> = numbers.filter_map(|number| number.parse().ok()).collect();
    Some(numbers.try_into().unwrap_or_else(|_| panic!("{line}")))
}

/// Returns the scene's file, from the introduction.
fn file_of(lines: &[String]) -> &Path {
    let named = lines.iter().find_map(|line| line.split_once("its file"));
    Path::new(named.unwrap().1.trim())
}

#[test]
fn a_flood_delays_all_without_share_and_only_itself_with_it() {
    let mut demo = Demo::start(&["--scene", "fair"]);
    let mut lines = Vec::new();
    while let Ok(line) = demo.lines.recv_timeout(PATIENCE) {
        lines.push(line);
    }
    let all = lines.join("\n");
    assert!(ended(&mut demo.process.0).success(), "{all}");
    assert_contains!(all, "was saved with share = \"per_client\"");
    assert!(!file_of(&lines).exists());
    let complaints = io::read_to_string(demo.process.0.stderr.take().unwrap()).unwrap();
    assert_eq!(complaints, "");

    let [_, rejected, _, worst] = light(&lines, "without share:").unwrap();
    assert!(rejected > 0 && worst > 1000, "{all}");
    let [answered, rejected, median, worst] = light(&lines, "with share:").unwrap();
    assert!(answered > 50 && rejected == 0, "{all}");
    assert!(median < 500 && worst < 2000, "{all}");
}
