//! Tests in a browser: the live page, the page of a waiting room, and requests over HTTP/2.

mod collapse;
mod http2;
pub mod page;
mod room;
