//! Describes the machine, in one line.

use std::fs;

use super::placement::processors;

/// Processors, memory and kernel.
pub fn describe() -> String {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let model = field(&read("/proc/cpuinfo"), "model name");
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let gigabytes = memory
        .trim_end_matches("kB")
        .trim()
        .parse::<u64>()
        .map_or(0, |kilobytes| (kilobytes + (1 << 19)) >> 20);
    let release = read("/proc/sys/kernel/osrelease");
    // The text after the numbers names a build, not a kernel version.
    let kernel: String = release
        .trim()
        .chars()
        .take_while(|letter| letter.is_ascii_digit() || *letter == '.')
        .collect();
    let count = processors().len();
    format!("{count} processors ({model}), {gigabytes} GB, Linux {kernel}")
}

/// The load average of the last minute.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split_whitespace().next();
    first
        .and_then(|number| number.parse().ok())
        .unwrap_or_default()
}

fn field(text: &str, name: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line
        .unwrap_or_default()
        .trim_start_matches([':', ' ', '\t']);
    value.trim().to_owned()
}
