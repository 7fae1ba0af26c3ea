//! The command line: what to measure, and which proxies.

use clap::{Parser, ValueEnum};

use crate::peers::Kind;

/// A part of benches/README.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    Cost,
    Evenness,
    Memory,
}

impl Part {
    pub const ALL: [Self; 3] = [Self::Cost, Self::Evenness, Self::Memory];

    /// The part's name, as an argument and in the page.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cost => "cost",
            Self::Evenness => "evenness",
            Self::Memory => "memory",
        }
    }
}

/// A measurement that can run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Row {
    /// CPU of a forwarded request: one worker, one key.
    Proxied,
    /// CPU of a rejected request.
    Rejected,
    /// CPU of a forwarded request: two workers, 1000 keys.
    Workers,
    /// CPU of a forwarded request with 1, 1000 and a million keys, and the memory of a key.
    Keys,
    /// CPU of a forwarded request over TLS: 64 kept connections.
    Tls,
    /// CPU of a forwarded request by HTTP/2 over TLS: 16 connections of 8 streams.
    Http2,
    /// CPU of a request that waits, 4000r/s, ten at a time.
    Waits,
    /// The same with ten thousand at a time.
    Deep,
    /// How evenly one key's requests leave, at four rates.
    Streams,
    /// How evenly they leave at 500r/s beside a flood of rejected requests.
    Flooded,
    /// CPU of a forwarded request behind an open gate, beside one without a gate; drip only.
    OpenGate,
    /// How evenly requests of many keys leave through a gate with four workers; drip only.
    Gated,
    /// How well thousands of slow keys keep their pace.
    Slow,
    /// Memory of a proxy that has just started, and how soon it listens.
    Startup,
    /// Memory of a waiting request with its connection.
    Waiting,
    /// Memory of an idle client connection.
    Connections,
    /// Memory of an idle TLS connection.
    TlsConnections,
}

impl Row {
    /// The parts that include this row.
    pub fn parts(self) -> &'static [Part] {
        match self {
            Self::Proxied
            | Self::Rejected
            | Self::Workers
            | Self::Tls
            | Self::Http2
            | Self::Waits
            | Self::Deep
            | Self::OpenGate => &[Part::Cost],
            Self::Keys => &[Part::Cost, Part::Memory],
            Self::Streams | Self::Flooded | Self::Gated | Self::Slow => &[Part::Evenness],
            Self::Startup | Self::Waiting | Self::Connections | Self::TlsConnections => {
                &[Part::Memory]
            }
        }
    }

    /// Duration in seconds: of a full run with all peers, and of a quick run.
    fn seconds(self) -> (u32, u32) {
        match self {
            Self::Proxied | Self::Rejected | Self::Workers => (26, 4),
            Self::Keys => (115, 20),
            Self::Streams => (80, 12),
            Self::Slow => (31, 12),
            Self::Deep => (31, 8),
            Self::Flooded
            | Self::OpenGate
            | Self::Gated
            | Self::Tls
            | Self::Http2
            | Self::Waits
            | Self::Startup
            | Self::Waiting
            | Self::Connections
            | Self::TlsConnections => (12, 4),
        }
    }
}

/// drip beside other proxies: CPU of a request, evenness, memory.
#[derive(Debug, Parser)]
#[command(name = "compare")]
pub struct Arguments {
    /// Parts to measure; all by default
    pub parts: Vec<Part>,
    /// Rows to measure, separated by commas; all of the parts by default
    #[arg(long, value_delimiter = ',', value_name = "ROWS")]
    only: Vec<Row>,
    /// Proxies to measure, separated by commas; all that are installed by default
    #[arg(long, value_delimiter = ',', value_name = "PEERS")]
    pub peers: Vec<Kind>,
    /// Rounds of each measurement
    #[arg(long)]
    pub rounds: Option<usize>,
    /// One short round of each measurement
    #[arg(long)]
    pub quick: bool,
    // Added by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Arguments {
    pub fn read() -> Self {
        let mut arguments = Self::parse();
        if arguments.parts.is_empty() {
            arguments.parts = Part::ALL.into();
        }
        arguments
    }

    pub fn wants(&self, row: Row) -> bool {
        let of_part = row.parts().iter().any(|part| self.parts.contains(part));
        of_part && (self.only.is_empty() || self.only.contains(&row))
    }

    /// Whether the selected parts have none of the selected rows.
    pub fn is_empty(&self) -> bool {
        !Row::value_variants().iter().any(|row| self.wants(*row))
    }

    pub fn wants_peer(&self, kind: Kind) -> bool {
        self.peers.is_empty() || self.peers.contains(&kind)
    }

    /// Whether the parts are measured with all their rows and peers, as the page shows them.
    pub fn is_whole(&self) -> bool {
        !self.quick && self.only.is_empty() && self.peers.is_empty() && self.rounds.is_none()
    }

    /// Approximate duration of the run. Most of it is windows of fixed length.
    pub fn estimate(&self) -> String {
        let rows = Row::value_variants().iter().filter(|row| self.wants(**row));
        let seconds = rows.map(|row| row.seconds());
        let seconds: u32 = seconds
            .map(|(whole, quick)| if self.quick { quick } else { whole })
            .sum();
        format!("{} min {} s", seconds / 60, seconds % 60)
    }
}
