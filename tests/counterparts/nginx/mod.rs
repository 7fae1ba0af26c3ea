//! Comparisons with a real nginx: equal requests to both, and nginx's own tests.

mod access;
mod access_log;
mod balance;
mod client_certificates;
mod differential;
mod dry_run;
mod http2_downgrade;
mod http2_origin;
mod import;
mod import_paths;
mod import_routing;
mod ingress;
mod limit_conn;
mod limit_req_suite;
mod methods;
mod pages;
mod proxies;
mod ratelimit_headers;
mod rewriting;
mod selection;
mod tls_origins;
mod zones;
