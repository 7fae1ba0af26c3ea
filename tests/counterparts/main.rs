//! Tests beside real programs.
//!
//! `tests/run.sh GROUP ...` installs what a group needs, and runs it.
//!
//! | group | what it tests |
//! |---|---|
//! | `chromium` | the live page, the page of a waiting room, and requests of a browser |
//! | `curl` | requests of curl, nghttp and openssl, and what they read |
//! | `documents` | the commands of the README, of docs/ and of its examples |
//! | `haproxy` | `tests/checklist` with nginx and haproxy beside drip, and haproxy as a client |
//! | `languages` | clients and servers in Go, Java, `JavaScript`, PHP and Python |
//! | `nginx` | the same requests to nginx and to drip, and translated files |
//! | `package` | the packages, their unit, and the log in the journal |
//! | `prometheus` | dashboards, alerts and the scrape configuration |
//! | `redis` | limits, gates, rooms and permits that gateways share; the headline without Redis |
//! | `system` | a shell, a service manager and other tools of the system that run drip |
//! | `varnish` | responses that a cache may keep |
//!
//! A group is a module here, and a line in `tests/run.sh` with the packages that it needs.

mod chromium;
mod curl;
mod documents;
mod haproxy;
mod languages;
mod nginx;
mod package;
#[allow(clippy::unnecessary_wraps, reason = "the other binary has no peers")]
mod peers;
mod programs;
mod prometheus;
mod redis;
#[allow(
    dead_code,
    unused_imports,
    reason = "the tests of the other binary use the rest"
)]
#[path = "../support/mod.rs"]
mod support;
mod system;
mod varnish;
