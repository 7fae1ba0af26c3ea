//! HTTP, from the client's first byte to the last byte of the origin's response.
//!
//! | module | what it is |
//! |---|---|
//! | [`message`] | heads, framing and bodies of HTTP/1, shared by both sides |
//! | `http2` | bodies and trailers of HTTP/2, for both sides |
//! | [`tcp`] | options of the TCP connections on both sides |
//! | [`upstream`] | the side to the origin: servers, their health, connections |
//! | [`downstream`] | the side to the clients: connections over HTTP/1, HTTP/2 and TLS |
//! | [`gateway`] | the routes, zones and origins in force, and the step to the next version |
//! | [`proxy`] | the path of a request: route, key, turn, origin, response |

pub mod downstream;
pub mod gateway;
mod http2;
pub mod message;
pub mod proxy;
pub mod tcp;
pub mod upstream;
