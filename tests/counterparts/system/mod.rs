//! Programs of Debian's base system that Rust cannot replace: `unshare`, `mount` and `sh`.

mod resolve;
