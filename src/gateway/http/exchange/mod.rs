//! The path of a request through the gateway.
//!
//! | step | module | stages |
//! |---|---|---|
//! | arrive | `arrive` | checks, route, networks, CORS, inputs, action, room, path, size, cost |
//! | admit | `admit` | `limits` in the zones, `collapse`, the gate of the origin |
//! | forward | `forward` | server and connection, head, upload, `answer`, `download` or `tunnel` |
//! | respond | `reply`, `response_fields` | the gateway's responses, and the fields of all |
//! | record | `record` | counts, log and spans, once the request has ended |

mod admit;
mod answer;
mod arrive;
mod buffered_client;
mod client;
mod collapse;
mod cookies;
mod cors;
mod cost;
mod download;
mod failure;
mod finish;
mod forward;
mod gate;
mod grpc;
mod handler;
mod heads;
mod hold;
mod key;
mod limits;
mod onward;
mod page;
mod ratelimit_headers;
mod read_ahead;
mod record;
mod replace;
mod reply;
mod reply_body;
mod request_id;
mod request_info;
mod response_fields;
mod retry_after;
mod rewrite;
mod room;
mod tunnel;
mod upload;
mod work;
mod worker;

pub use worker::Worker;
