//! Metrics of the process: connections, exhausted limits, and resources.

use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

use crate::http::message::buffer;
use crate::observe::connections::ClientConnections;
use crate::observe::metrics::{DESCRIPTOR_WAITS, LOCAL_PORT_WAITS, handshake_failures};
use crate::status::exposition::table::Table;

/// Writes the metrics of the process.
pub(crate) fn write(out: &mut String, connections: &ClientConnections) {
    let mut table = Table::of_process(out);
    let counts = connections.counts();
    table.value("drip_connections", |()| counts.open);
    table.value("drip_max_connections", |()| counts.max);
    let buffers = buffer::stats();
    table.each("drip_buffers", "state", |()| {
        [("in_use", buffers.in_use), ("pooled", buffers.pooled)]
    });
    table.counts("drip_descriptor_waits_total", "for", |()| &DESCRIPTOR_WAITS);
    table.counts("drip_local_port_waits_total", "for", |()| &LOCAL_PORT_WAITS);
    // Without `/proc` the resources are unknown and left out.
    let _unknown = write_resources(&mut table);
}

/// Writes the failed TLS handshakes with clients.
pub(crate) fn write_handshakes(out: &mut String) {
    Table::of_process(out).counts("drip_tls_handshake_failures_total", "reason", |()| {
        handshake_failures()
    });
}

/// Writes the resources of the process, as the Linux kernel reports them (proc(5)).
///
/// Returns `None` if `/proc` lacks a file or field: what depends on it is left out.
fn write_resources(table: &mut Table<'_, ()>) -> Option<()> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The program name, in parentheses, may contain any character.
    let (_, stat) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = stat.split(' ').collect();
    // proc(5) counts the fields from 1. The first field after the name is the third, the state.
    let field = |number: usize| -> Option<u64> { fields.get(number - 3)?.parse().ok() };
    let (user_time, system_time, threads) = (field(14)?, field(15)?, field(20)?);
    let (virtual_memory, resident_pages) = (field(23)?, field(24)?);
    let open_files = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
    let ticks_per_second = clock_ticks_per_second();
    let cpu_millis = (user_time + system_time) * 1000 / ticks_per_second;
    let limit = |resource| getrlimit(resource).current.unwrap_or_default();
    table.value("process_cpu_seconds_total", |()| cpu_millis as f64 / 1e3);
    for (name, value) in [
        ("process_open_fds", open_files),
        ("process_max_fds", limit(Resource::Nofile)),
        ("process_virtual_memory_bytes", virtual_memory),
        ("process_virtual_memory_max_bytes", limit(Resource::As)),
        (
            "process_resident_memory_bytes",
            resident_pages * page_size() as u64,
        ),
        ("process_threads", threads),
    ] {
        table.value(name, |()| value);
    }
    // The file is missing with systemd's `ProcSubset=pid`.
    let system = fs::read_to_string("/proc/stat").ok()?;
    let mut lines = system.lines();
    let booted: u64 = lines.find_map(|line| line.strip_prefix("btime ")?.parse().ok())?;
    let started = booted + field(22)? / ticks_per_second;
    table.value("process_start_time_seconds", |()| started);
    Some(())
}
