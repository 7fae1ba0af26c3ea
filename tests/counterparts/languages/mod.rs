//! Tests with clients and servers in Go, Java, `JavaScript`, PHP and Python.

mod backends;
mod client_certificates;
mod find;
mod grpc;
mod http2;
mod jwt;
mod streams;
