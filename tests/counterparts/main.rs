//! The tests beside real programs: `tests/run.sh GROUP ...` installs what a group needs, and runs it.
//!
//! | group | what it tests |
//! |---|---|
//! | `chromium` | the live page, the page of a waiting room, and requests of a browser |
//! | `curl` | what curl, nghttp and openssl send and make of the answers |
//! | `documents` | the commands of the README, of docs/ and of its examples |
//! | `haproxy` | `tests/checklist` with nginx and haproxy beside drip, and haproxy as a client |
//! | `languages` | clients and servers in Go, Java, `JavaScript`, PHP and Python |
//! | `nginx` | the same requests to nginx and to drip, and translated files |
//! | `package` | the packages, their unit, and the log in the journal |
//! | `postgres` | a database that refuses the connection after the last |
//! | `prometheus` | dashboards, alerts and the scrape configuration |
//! | `redis` | limits, gates, rooms and permits that gateways share; the headline in incidents |
//! | `system` | what a shell or a service manager does with drip |
//! | `varnish` | what a cache may keep |
//!
//! A group is a module here and a line of `tests/run.sh`, which has the packages that it needs.

mod chromium;
mod curl;
mod documents;
mod haproxy;
mod languages;
mod nginx;
mod package;
#[allow(clippy::unnecessary_wraps, reason = "the other binary has no peers")]
mod peers;
mod postgres;
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
