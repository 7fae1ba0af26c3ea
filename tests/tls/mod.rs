//! The program with `[server.tls]`, used by TLS clients over HTTP/1.1 and HTTP/2, and certificates of origins and of Redis.

mod certificates;
mod client_certificates;
mod http1;
mod http2;
mod names;
mod origins;
mod redis;
mod streams;
