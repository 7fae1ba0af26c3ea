//! The tests of the whole program, in one binary: linking takes longer than most of them.
//!
//! | module | what it tests |
//! |---|---|
//! | `gateway` | `drip run`: queues, pacing, reload, stop, origins, admin port |
//! | `checklist` | each line of `docs/proxy-checklist.md`, in bytes |
//! | `tls` | clients over TLS and HTTP/2 |
//! | `http2` | HTTP/2 to origins and by prior knowledge: abuse, smuggling, the same as over HTTP/1 |
//! | `streams` | what browsers and other programs make of HTTP/2 |
//! | `backends` | what programs of other languages read, and what limits count |
//! | `grpc` | calls of gRPC by grpcio on both sides |
//! | `nginx`, `oracle` | the same requests to nginx and to drip |
//! | `room` | visitors at the waiting room of an origin: programs, forgers, restarts, a crowd, a browser |
//! | `collapse` | requests that share the answer of one departure: who may, what they get, and when the origin fails |
//! | `store`, `shared` | limits in Redis, with one gateway and with several |
//! | `abuse`, `soak` | floods, slow clients, and everything at once |
//! | `prometheus`, `page`, `top` | what operators see |
//! | `incidents` | whether the headline tells each of many incidents |
//! | `package` | the packages, their unit, and the log in the journal |
//! | `advise`, `import`, `init`, `simulate`, `demo` | the offline commands |
//! | `goldens` | whether the program says the same as before |
//! | `readme`, `pages`, `examples` | what the documents promise |
//! | `layers`, `profiles` | the order of the modules and of the build profiles |
//! | `recipes`, `words` | the recipes of `CONTRIBUTING.md`; names and phrases |
//! | `budget` | how the budget of a request is read, and what is above it |

mod abuse;
mod advise;
mod backends;
mod budget;
mod checklist;
mod collapse;
mod demo;
mod examples;
mod gateway;
mod goldens;
mod grpc;
mod http2;
mod import;
mod incidents;
mod init;
mod layers;
mod nginx;
mod oracle;
mod package;
mod page;
mod pages;
mod profiles;
mod prometheus;
mod readme;
mod recipes;
mod room;
mod shared;
mod simulate;
mod soak;
mod store;
mod streams;
mod support;
mod tls;
mod top;
mod words;
