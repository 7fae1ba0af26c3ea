//! Who asks, as a kind tells one request from another.

/// A request, as its kind knows it.
#[derive(Clone, Copy, Debug)]
pub struct Asker {
    /// A number that two clients seldom have in common.
    pub client: u64,
    /// Whether its answer could be that of others.
    pub may_lead: bool,
}
