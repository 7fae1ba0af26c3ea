//! Metrics of the process: connections, exhausted limits, and resources.

use std::fs;
use std::time::Duration;

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
    if let Some(usage) = Usage::read() {
        usage.write(&mut table);
    }
}

/// Writes the failed TLS handshakes with clients.
pub(crate) fn write_handshakes(out: &mut String) {
    Table::of_process(out).counts("drip_tls_handshake_failures_total", "reason", |()| {
        handshake_failures()
    });
}

/// Resources of the process, as the Linux kernel reports them (proc(5)).
struct Usage {
    cpu_time: Duration,
    threads: u64,
    virtual_memory: u64,
    resident_memory: u64,
    /// Start of the process, in Unix time.
    started: Option<u64>,
    open_files: u64,
}

impl Usage {
    /// Reads the usage. `None` without `/proc`.
    fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The program name, in parentheses, may contain any character.
        let (_, stat) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = stat.split(' ').collect();
        // proc(5) counts the fields from 1. The first field after the name is the third, the state.
        let field = |number: usize| -> Option<u64> { fields.get(number - 3)?.parse().ok() };
        let ticks = clock_ticks_per_second();
        // Missing with systemd's `ProcSubset=pid`.
        let system = fs::read_to_string("/proc/stat").unwrap_or_default();
        let booted = system
            .lines()
            .find_map(|line| line.strip_prefix("btime ")?.parse::<u64>().ok());
        Some(Self {
            cpu_time: Duration::from_millis((field(14)? + field(15)?) * 1000 / ticks),
            threads: field(20)?,
            started: booted
                .zip(field(22))
                .map(|(booted, after)| booted + after / ticks),
            virtual_memory: field(23)?,
            resident_memory: field(24)? * page_size() as u64,
            open_files: fs::read_dir("/proc/self/fd").ok()?.count() as u64,
        })
    }

    /// Writes the resource usage.
    fn write(&self, table: &mut Table<'_, ()>) {
        let limit = |of| getrlimit(of).current.unwrap_or_default();
        table.value("process_cpu_seconds_total", |()| {
            self.cpu_time.as_secs_f64()
        });
        for (name, value) in [
            ("process_open_fds", self.open_files),
            ("process_max_fds", limit(Resource::Nofile)),
            ("process_virtual_memory_bytes", self.virtual_memory),
            ("process_virtual_memory_max_bytes", limit(Resource::As)),
            ("process_resident_memory_bytes", self.resident_memory),
            ("process_threads", self.threads),
        ] {
            table.value(name, |()| value);
        }
        table.some("process_start_time_seconds", |()| self.started);
    }
}
