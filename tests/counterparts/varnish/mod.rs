//! Tests of what a cache may keep (RFC 9111): equal requests to drip, Varnish and nginx.

mod cases;
mod suite;
