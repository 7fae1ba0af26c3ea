//! Tests with curl, nghttp and openssl as clients.

mod listen;
mod names;
mod prior_knowledge;
mod proxy_protocol;
