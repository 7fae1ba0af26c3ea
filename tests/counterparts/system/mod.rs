//! Tests with programs of Debian's base system: `unshare`, `mount` and `sh`.

mod resolve;
