//! The path of a request through the gateway.
//!
//! The gateway finds its route, takes its key, waits for its turn, and forwards it to the origin.

mod admitted;
mod answer;
mod buffered_client;
mod client;
mod collapse;
mod conditions;
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
mod page;
mod pass_gate;
mod ratelimit_headers;
mod read_ahead;
mod record;
mod replace;
mod reply;
mod reply_body;
mod request_id;
mod request_info;
mod retry_after;
mod rewrite;
mod room;
mod room_fields;
mod tunnel;
mod upload;
mod work;
mod worker;

pub use worker::Worker;
