//! HTTP: everything from the client's first byte to the last byte of its response.
//!
//! | module | what it is |
//! |---|---|
//! | [`message`] | heads, framing and bodies of HTTP/1, shared by both sides |
//! | `http2` | bodies and trailers of HTTP/2, for both sides |
//! | [`tcp`] | options of the TCP connections on both sides |
//! | [`downstream`] | the client side: connections over HTTP/1, HTTP/2 and TLS |
//! | [`gateway`] | the routes, zones and origins in use, and reloads of them |
//! | [`exchange`] | a request and its response: route, zones, gate, origin |

pub mod downstream;
pub mod exchange;
pub mod gateway;
pub(crate) mod http2;
pub mod message;
pub mod tcp;
