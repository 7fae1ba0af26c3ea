//! The resources that a process uses, as the kernel reports them.

use std::fs;
use std::thread;
use std::time::Duration;

use crate::support::now;

/// A running process.
#[derive(Clone, Copy, Debug)]
pub struct Process(u32);

impl Process {
    pub fn of(id: u32) -> Self {
        Self(id)
    }

    fn read(self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.0)).expect("a running process")
    }

    /// Its resident memory now, in bytes, without pages of its program file, which the kernel may drop.
    pub fn memory(self) -> u64 {
        let status = self.read("status");
        let of_kind = |kind: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(kind));
            let kilobytes = line.expect("its memory").trim().trim_end_matches(" kB");
            kilobytes.parse::<u64>().expect("a number") * 1024
        };
        of_kind("RssAnon:") + of_kind("RssShmem:")
    }

    /// The most resident memory that it has had, in bytes; `None` once it has ended.
    pub fn peak_memory(self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0)).ok()?;
        let peak = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kilobytes = peak.trim().trim_end_matches(" kB");
        Some(kilobytes.parse::<u64>().expect("a number") * 1024)
    }

    /// How many file descriptors it has open.
    pub fn descriptors(self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.0))
            .expect("a running process")
            .count()
    }

    /// The processor time it has used so far, in user and kernel mode.
    fn processor(self) -> Duration {
        let stat = self.read("stat");
        // Its name, in parentheses, may have spaces in it. After it, user and system time are fields 12 and 13.
        let (_, fields) = stat.rsplit_once(')').expect("a name");
        let ticks = |nth| -> u64 {
            let field = fields.split_whitespace().nth(nth);
            field.and_then(|field| field.parse().ok()).expect("ticks")
        };
        // Linux reports them in hundredths of a second, at any tick rate.
        Duration::from_millis((ticks(11) + ticks(12)) * 10)
    }

    /// Its share of one core, measured over a second: 1.0 is one core all the time.
    pub fn load(self) -> f64 {
        let (began, before) = (now(), self.processor());
        thread::sleep(Duration::from_secs(1));
        self.processor().saturating_sub(before).as_secs_f64() / began.elapsed().as_secs_f64()
    }
}
