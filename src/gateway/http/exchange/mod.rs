//! The path of a request through the gateway.
//!
//! | step | module | stages |
//! |---|---|---|
//! | arrive | `arrive` | checks, route, networks, CORS, inputs, action, room, path, size, cost |
//! | admit | `admit` | `limits` in the zones, `collapse`, the gate of the origin |
//! | forward | `forward` | server and connection, head, upload, `answer`, `download` or `tunnel` |
//! | respond | `reply`, `response_fields` | the gateway's responses, and the fields of all |
//! | record | `record` | counts, log and spans, once the request has ended |
//!
//! Words used here: A *zone* limits the rate of each key, and admits a request at once, after a
//! wait, or not at all. The *gate* of an origin limits all requests to that origin. A *permit* is
//! the right to run one request at an origin, or of a key. A *departure* is a request that has
//! waited and goes to its origin. A *charge* is what a zone has counted for a request; it can be
//! refunded. With *collapse*, one *leader* fetches an answer that its *followers* share. With
//! *hold*, requests wait while their origin cannot be reached.

mod admit;
mod answer;
mod arrive;
mod client;
mod collapse;
mod cookies;
mod cors;
mod cost;
mod decision;
mod destination;
mod download;
mod failure;
mod finish;
mod forward;
mod gate;
mod gate_progress;
mod grpc;
mod handler;
mod heads;
mod hold;
mod key;
mod learned_cost;
mod limits;
mod page;
mod ratelimit_headers;
mod record;
mod replace;
mod reply;
mod reply_body;
mod request_buffer;
mod request_id;
mod request_info;
mod response_buffer;
mod response_fields;
mod retry_after;
mod rewrite;
mod room;
mod tunnel;
mod upload;
mod worker;

pub use worker::Worker;
