//! The real program over real sockets, with clients on one side and an origin of our own on the other.

mod accept;
mod admin;
mod admin_api;
mod algorithms;
mod backoff;
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
mod live;
mod operator;
mod origins;
mod pacing;
mod plans;
mod queue;
mod retune;
mod servers;
mod stop;
mod timeouts;
mod upstreams;
