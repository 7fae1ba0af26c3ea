//! The resources that processes use, as counted by the kernel.

use std::fs;
use std::time::Duration;

/// Returns the processor time of `processes` so far: user and kernel, all threads.
pub fn processor_time(processes: &[u32]) -> Duration {
    processes
        .iter()
        .map(|process| time_of_process(*process))
        .sum()
}

/// Returns the memory of `processes` in bytes. A shared page counts once.
pub fn memory(processes: &[u32]) -> u64 {
    let of_one = |process: &u32| {
        let rollup =
            fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
        kilobytes(&rollup, "Pss:").or_else(|| {
            let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
            kilobytes(&status, "VmRSS:")
        })
    };
    processes.iter().filter_map(of_one).sum::<u64>() * 1024
}

/// Returns the number of open file descriptors of `processes`.
pub fn descriptors(processes: &[u32]) -> usize {
    let of_one = |process: &u32| fs::read_dir(format!("/proc/{process}/fd")).map(Iterator::count);
    processes
        .iter()
        .filter_map(|process| of_one(process).ok())
        .sum()
}

/// Returns the number of a line that begins with `name`.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

/// Returns the processor time of one process.
///
/// It is the scheduler's count in nanoseconds if the kernel keeps it, else that of `stat`, in
/// hundredths of a second.
fn time_of_process(process: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let counted = threads.into_iter().flatten().flatten().map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    let counted: Option<u64> = counted.sum();
    match counted {
        Some(nanos) if nanos > 0 => Duration::from_nanos(nanos),
        _ => time_by_ticks(process).unwrap_or_default(),
    }
}

/// Returns the processor time in `stat` of one process.
fn time_by_ticks(process: u32) -> Option<Duration> {
    /// The unit of processor times in `stat`, the same for every tick rate of the kernel.
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may have any characters in it.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut user_and_kernel = after_name.split_whitespace().skip(11).take(2);
    let mut next = || user_and_kernel.next()?.parse::<u32>().ok();
    Some(TICK * (next()? + next()?))
}
