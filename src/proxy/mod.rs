//! A request's way through the gateway: find its route, take its key, wait for its turn, forward it to the origin.

mod answer;
mod arrival;
mod client;
mod dialects;
mod handler;
mod headers;
mod key;
mod limits;
mod reply;
mod served;
mod tunnel;
mod unread;
mod worker;

pub use answer::Answer;
pub use worker::Worker;
