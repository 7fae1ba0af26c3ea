//! The real program over real sockets, with clients on one side and an origin of our own on the other.

mod accept;
mod admin;
mod admin_api;
mod algorithms;
mod backoff;
mod billing;
mod bodies;
mod check;
mod cost;
mod eviction;
mod fields;
mod gate;
mod gate_api;
mod handover;
mod heads;
mod health;
mod heavy_keys;
mod history;
mod hold;
mod in_flight;
mod include;
mod listen;
mod live;
mod log;
mod new_keys;
#[cfg(not(feature = "otlp"))]
mod no_spans;
pub mod operator;
mod origin_panel;
mod origins;
mod overrides;
mod pacing;
mod plans;
mod proxy_protocol;
mod queue;
mod retune;
mod rotation;
mod servers;
#[cfg(feature = "otlp")]
mod spans;
mod state;
mod stop;
mod store_panel;
mod timeouts;
mod trace_context;
mod upstreams;
mod what_if;
