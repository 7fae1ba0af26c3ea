//! `drip demo`, run as a user runs it.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::fetch;

/// Time to wait for a line, long enough on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

struct Demo {
    process: Killed,
    lines: Receiver<String>,
    folder: TempDir,
    ports: [u16; 3],
}

impl Demo {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ports = free_ports();
        write(&folder.path().join("gateway.toml"), ports, "10r/s");
        let (process, lines) = start(&mut demo(&folder));
        Self {
            process,
            lines,
            folder,
            ports,
        }
    }

    fn set_rate(&self, rate: &str) {
        write(&self.folder.path().join("gateway.toml"), self.ports, rate);
    }

    /// The first line that `wanted` accepts.
    fn find<T>(&self, mut wanted: impl FnMut(&str) -> Option<T>) -> T {
        let mut seen = Vec::new();
        for _ in 0..60 {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                break;
            };
            if let Some(found) = wanted(&line) {
                return found;
            }
            seen.push(line);
        }
        panic!("not found in:\n{}", seen.join("\n"));
    }
}

/// A process that does not outlive its test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program; receives each line that it prints.
fn start(demo: &mut Command) -> (Killed, Receiver<String>) {
    let mut process = demo.spawn().unwrap();
    let (tell, lines) = mpsc::channel();
    let stdout: ChildStdout = process.stdout.take().unwrap();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    (Killed(process), lines)
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
    panic!("it goes on");
}

/// One second as it was shown: how many left, the gap between two in milliseconds, the rate in force.
fn second(line: &str) -> Option<(u32, Option<f64>, String)> {
    let words = line.split_whitespace().collect::<Vec<_>>();
    words.first()?.strip_suffix('s')?.parse::<u32>().ok()?;
    Some((
        words.get(6)?.parse().ok()?,
        words.get(7)?.parse().ok(),
        (*words.last()?).to_owned(),
    ))
}

fn demo(folder: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_drip"));
    command
        .args(["demo", "-c", "gateway.toml"])
        .current_dir(folder.path());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn fair() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_drip"));
    command.args(["demo", "--scene", "fair"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn free_ports() -> [u16; 3] {
    [(); 3].map(|()| crate::support::free_address().port())
}

fn write(file: &Path, [listen, admin, origin]: [u16; 3], rate: &str) {
    let text = format!(
        "[server]\nlisten = [\"127.0.0.1:{listen}\"]\nadmin = \"127.0.0.1:{admin}\"\n\
         [origins.app]\nservers = [\"http://127.0.0.1:{origin}\"]\n\
         [zones.per_client]\nkey = \"$remote_addr\"\nrate = \"{rate}\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{{ zone = \"per_client\", burst = 20 }}]\n"
    );
    fs::write(file, text).unwrap();
}

#[test]
fn it_shows_the_pace_and_how_it_changes_until_it_is_interrupted() {
    let mut demo = Demo::start();
    demo.find(|line| {
        line.contains("gateway.toml:8  rate = \"10r/s\"")
            .then_some(())
    });
    for _ in 0..3 {
        let (left, gap, rate) = demo.find(second);
        let gap = gap.expect("nobody waited");
        assert!(
            (8..=12).contains(&left) && (90.0..110.0).contains(&gap),
            "{left}, {gap} ms"
        );
        assert_eq!(rate, "10r/s");
    }

    demo.set_rate("20r/s");
    demo.find(|line| {
        line.contains("gateway.toml:8 was saved and is in force: 10r/s is now 20r/s")
            .then_some(())
    });
    demo.find(|line| {
        let (_, gap, rate) = second(line)?;
        (rate == "20r/s" && (45.0..55.0).contains(&gap?)).then_some(())
    });

    demo.set_rate("nonsense");
    // Kept to the end: the gateway has more to say.
    let mut stderr = BufReader::new(demo.process.0.stderr.take().unwrap());
    let mut complaint = String::new();
    stderr.read_line(&mut complaint).unwrap();
    assert!(complaint.contains("gateway.toml:8:8: rate"), "{complaint}");

    assert!(interrupt(&mut demo.process.0).success());
    demo.find(|line| (line.contains(" arrived, ") && line.contains(" rejected")).then_some(()));
    demo.find(|line| line.contains("drip demo --scene fair").then_some(()));
}

#[test]
fn a_port_that_is_taken_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let ports = free_ports();
    write(&folder.path().join("gateway.toml"), ports, "10r/s");
    for (port, name) in [(ports[0], "server.listen"), (ports[2], "origins.app")] {
        let _taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let output = demo(&folder).output().unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{complaint}");
        assert!(
            complaint.contains(name) && complaint.contains("stop it"),
            "{complaint}"
        );
    }
}

/// The file that the demo wrote, from the line that says where to change the rate.
fn own_file(line: &str) -> Option<PathBuf> {
    let (place, _) = line.trim().split_once("  rate = \"10r/s\"")?;
    let (file, line) = place.rsplit_once(':')?;
    assert!(line.parse::<u32>().is_ok(), "{place}");
    Some(PathBuf::from(file))
}

/// Held by tests of demos that look for their ports themselves: two that start at once may both find one free.
static PORTS: Mutex<()> = Mutex::new(());

#[test]
fn without_a_file_it_writes_one_that_can_be_edited_and_removes_it_at_the_end() {
    let _alone = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_drip"));
    command.arg("demo").current_dir(folder.path());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let (process, lines) = start(&mut command);
    let mut demo = Demo {
        process,
        lines,
        folder,
        ports: [0; 3],
    };
    let page = demo.find(|line| {
        let (_, page) = line.split_once(" is the gateway, http://")?;
        Some(page.split_once("/ its live page")?.0.to_owned())
    });
    let file = demo.find(own_file);
    demo.find(second);
    assert!(fetch(page.parse().unwrap(), "/").text().contains("<html"));

    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("10r/s", "20r/s", 1)).unwrap();
    demo.find(|line| line.contains("10r/s is now 20r/s").then_some(()));
    assert!(interrupt(&mut demo.process.0).success());
    demo.find(|line| line.contains("`drip init`").then_some(()));
    assert!(!file.exists());
    assert_eq!(fs::read_dir(demo.folder.path()).unwrap().count(), 0);
}

/// The ports of its own file are those of the examples, unless they are taken.
#[test]
fn two_demos_without_a_file_run_beside_each_other() {
    let _alone = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_drip"));
        command.arg("demo").current_dir(folder.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        start(&mut command)
    };
    let shows = |lines: &Receiver<String>| {
        let line = lines.iter().find(|line| second(line).is_some());
        let (left, ..) = second(&line.expect("a second")).unwrap();
        assert!(left > 0);
    };
    let (_first, first_lines) = run();
    shows(&first_lines);
    let (_second, second_lines) = run();
    shows(&second_lines);
    shows(&first_lines);
}

#[test]
fn a_file_of_the_folder_that_does_not_fit_is_named_with_the_way_around_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("gateway.toml"), "nonsense = 1\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_drip"));
    let output = command.arg("demo").current_dir(folder.path()).output();
    let output = output.unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("gateway.toml:1:1: "), "{complaint}");
    assert!(complaint.contains("without gateway.toml"), "{complaint}");
}

/// What the nine light clients got: answers, rejections, median and worst wait in milliseconds.
fn light(lines: &[String], part: &str) -> Option<[u32; 4]> {
    let line = lines.iter().find(|line| line.starts_with(part))?;
    let numbers = line.split(|c: char| !c.is_ascii_digit());
    let numbers: Vec<u32> = numbers.filter_map(|number| number.parse().ok()).collect();
    Some(numbers.try_into().unwrap_or_else(|_| panic!("{line}")))
}

/// The scene's file, from the introduction.
fn file_of(lines: &[String]) -> &Path {
    let named = lines.iter().find_map(|line| line.split_once("its file"));
    Path::new(named.unwrap().1.trim())
}

#[test]
fn a_flood_delays_all_without_share_and_only_itself_with_it() {
    let (mut process, printed) = start(&mut fair());
    let mut lines = Vec::new();
    while let Ok(line) = printed.recv_timeout(PATIENCE) {
        lines.push(line);
    }
    let all = lines.join("\n");
    assert!(ended(&mut process.0).success(), "{all}");
    assert!(
        all.contains("was saved with share = \"per_client\""),
        "{all}"
    );
    assert!(!file_of(&lines).exists());
    let complaints = io::read_to_string(process.0.stderr.take().unwrap()).unwrap();
    assert_eq!(complaints, "");

    let [_, rejected, _, worst] = light(&lines, "without share:").unwrap();
    assert!(rejected > 0 && worst > 1000, "{all}");
    let [answered, rejected, median, worst] = light(&lines, "with share:").unwrap();
    assert!(answered > 50 && rejected == 0, "{all}");
    assert!(median < 500 && worst < 2000, "{all}");
}

#[test]
fn the_scene_of_a_flood_ends_when_it_is_interrupted() {
    let (mut process, printed) = start(&mut fair());
    let mut lines = Vec::new();
    while !lines.iter().any(|line: &String| line.starts_with("   1s ")) {
        lines.push(printed.recv_timeout(PATIENCE).unwrap());
    }
    assert!(interrupt(&mut process.0).success());
    lines.extend(printed.iter());
    assert!(light(&lines, "without share:").is_some(), "{lines:?}");
    assert!(light(&lines, "with share:").is_none(), "{lines:?}");
    assert!(!file_of(&lines).exists());
}

#[test]
fn a_scene_with_a_file_of_its_own_takes_none() {
    let output = fair().args(["-c", "gateway.toml"]).output().unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("the scene fair"), "{complaint}");
    assert!(complaint.contains("leave out -c"), "{complaint}");
}
