//! HTTP, from the client's first byte to the last byte of the origin's answer.
//!
//! | module | what it is |
//! |---|---|
//! | [`message`] | heads, framing and bodies of HTTP/1, shared by both legs |
//! | [`tcp`] | what both legs ask of their connections |
//! | [`upstream`] | the leg to the origin: servers, connections, one attempt at an answer |
//! | [`downstream`] | the leg to the clients: connections over HTTP/1, HTTP/2 and TLS |
//! | [`proxy`] | a request's way: route, key, turn, origin, answer |

pub mod downstream;
pub mod message;
pub mod proxy;
pub mod tcp;
pub mod upstream;
