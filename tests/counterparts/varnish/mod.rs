//! What a cache may keep (RFC 9111): the same requests to drip, Varnish and nginx.

mod cases;
mod suite;
