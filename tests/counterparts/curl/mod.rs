//! Clients that are not browsers and need no language: curl, nghttp and openssl.

mod listen;
mod names;
mod prior_knowledge;
mod proxy_protocol;
