//! Resources that a process uses, as the kernel reports them.

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

    /// Returns its resident memory in bytes, without pages of its program file.
    ///
    /// The kernel may drop those pages.
    pub fn memory(self) -> u64 {
        let status = self.read("status");
        let of_kind = |kind: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(kind));
            let kilobytes = line.expect("its memory").trim().trim_end_matches(" kB");
            kilobytes.parse::<u64>().expect("a number") * 1024
        };
        of_kind("RssAnon:") + of_kind("RssShmem:")
    }

    /// Returns the peak of its resident memory in bytes; `None` once it has ended.
    pub fn peak_memory(self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0)).ok()?;
        let peak = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kilobytes = peak.trim().trim_end_matches(" kB");
        Some(kilobytes.parse::<u64>().expect("a number") * 1024)
    }

    /// Returns the number of its open file descriptors.
    pub fn descriptors(self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.0))
            .expect("a running process")
            .count()
    }

    /// Returns the processor time it has used so far, in user and kernel mode.
    fn processor(self) -> Duration {
        let stat = self.read("stat");
        // The name, in parentheses, may contain spaces. User and system time are fields 12 and 13
        // after it.
        let (_, fields) = stat.rsplit_once(')').expect("a name");
        let ticks = |nth| -> u64 {
            let field = fields.split_whitespace().nth(nth);
            field.and_then(|field| field.parse().ok()).expect("ticks")
        };
        // Linux reports ticks of a hundredth of a second, at any tick rate of the kernel.
        Duration::from_millis((ticks(11) + ticks(12)) * 10)
    }

    /// Returns its share of one core, measured over a second: 1.0 is one fully used core.
    pub fn load(self) -> f64 {
        let (began, before) = (now(), self.processor());
        thread::sleep(Duration::from_secs(1));
        self.processor().saturating_sub(before).as_secs_f64() / began.elapsed().as_secs_f64()
    }
}
