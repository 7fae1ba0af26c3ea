use std::time::Duration;

use super::figure_bound::MAX_FIGURES;

/// The state of the origin and its gate, told at each tick.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observed {
    /// Requests that have left to the origin so far: a count that never goes back.
    ///
    /// Those whose answers are told, and no others: with `--only`, of that route or class alone.
    pub departed: u64,
    /// Whether a request waited at the gate all the time since the tick before.
    pub has_waited: bool,
    /// How long the last request to leave had waited at the gate.
    pub wait: Option<Duration>,
    /// Most requests at the origin at once since the tick before.
    pub in_flight: u32,
    /// A number that is another one after each change of the file.
    pub file: u64,
    /// A number that is another one after a server has come, gone, or changed its health.
    pub servers: u64,
    /// Whether back-off lowers anything now.
    pub is_backed_off: bool,
    /// The figures that were read since the tick before, in the order of the settings; `None`: not
    /// read. Three readings on end beyond the bound are a breach.
    pub figures: [Option<f64>; MAX_FIGURES],
}
