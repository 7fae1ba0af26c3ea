//! Tests of what a correct reverse proxy does, with a raw socket on both sides.
//!
//! The rules are from RFC 9110 and 9112, and from what fragile origins really send. Where possible,
//! a test also runs against a real nginx or haproxy, which proves the test itself.
//!
//! Tests are named after the lines of the checklist: headers 1 to 6, target and host 7 and 8,
//! framing 9 to 18, failure 19 to 24.

pub mod bed;
mod breaks;
mod early;
mod ends;
mod expect;
mod failure;
mod headers;
mod http_1_0;
mod idle;
mod interim;
mod keepalive;
mod leaving;
mod lengths;
mod limits;
mod logins;
mod pauses;
mod pipelining;
mod retries;
mod reuse;
pub mod smuggling;
mod stop;
mod target;
mod target_bytes;
mod trailers;
mod tunnels;
mod upgrades;
