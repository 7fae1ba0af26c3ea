//! Waits for a resource of this host: a file descriptor, or a local port.

use std::sync::LazyLock;

use super::label::{CountBy, labels};

labels! {
    /// Who waited for a file descriptor.
    pub enum DescriptorWait {
        /// A request, for its connection to an origin.
        Origin = "origin",
        /// The same for all of `connect_timeout`: it gets 503.
        InVain = "in_vain",
        /// A new client: a try to accept it failed.
        Client = "client",
    }
}

labels! {
    /// Who waited for a local port.
    pub enum LocalPortWait {
        /// A request, for its connection to an origin.
        Origin = "origin",
        /// The same for all of `connect_timeout`: it gets 503.
        InVain = "in_vain",
    }
}

/// Waits for file descriptors so far.
pub static DESCRIPTOR_WAITS: LazyLock<CountBy<DescriptorWait>> = LazyLock::new(CountBy::default);
/// Waits for local ports so far.
pub static LOCAL_PORT_WAITS: LazyLock<CountBy<LocalPortWait>> = LazyLock::new(CountBy::default);
