//! Tests of the whole program that need no other program.
//!
//! They are one binary, because linking takes longer than most tests.
//!
//! | module | what it tests |
//! |---|---|
//! | `gateway` | `drip run`: queues, pacing, reload, stop, origins, admin port |
//! | `checklist` | each line of `docs/proxy-checklist.md`, in bytes |
//! | `tls` | clients over TLS and HTTP/2 |
//! | `http2` | HTTP/2 to origins and by prior knowledge: abuse, smuggling, the same as over HTTP/1
//! |
//! | `oracle` | whether drip reads the same bytes as hyper does |
//! | `room` | visitors at the waiting room of an origin: programs, forgers, restarts |
//! | `collapse` | which requests share a response, and what happens when the origin fails |
//! | `incidents` | production incidents, and whether the operator is informed of cause and remedy |
//! | `load` | floods, crowds, experiments at real rates, and pace to the millisecond |
//! | `top` | what operators see in a terminal |
//! | `advise`, `import`, `init`, `simulate`, `demo` | the offline commands |
//! | `goldens` | whether the program prints and serves the same names and values as before |
//! | `pages` | what the documents promise; names of types |
//! | `layers`, `profiles` | the order of the modules and of the build profiles |
//! | `programs` | whether a test starts a program outside its group |
//! | `plot` | the charts of the benches |
//! | `budget` | reading and comparing the budget of a request |
//!
//! `tests/counterparts` has the tests beside other programs, `tests/long` the tests that take
//! minutes.

mod advise;
mod budget;
mod checklist;
mod collapse;
mod demo;
mod gateway;
mod goldens;
mod http2;
mod import;
mod incidents;
mod init;
mod layers;
mod load;
mod oracle;
mod pages;
mod peers;
#[allow(dead_code, unused_imports, reason = "the benches draw with it")]
#[path = "../benches/support/plot/mod.rs"]
mod plot;
mod profiles;
mod programs;
mod room;
mod simulate;
mod style;
#[allow(
    dead_code,
    unused_imports,
    reason = "the tests of the other binary use the rest"
)]
mod support;
mod tls;
mod top;
