//! Comparisons with a real nginx: the same requests to both, nginx's own tests, and what goes beyond nginx.

mod access_log;
mod dialects;
mod differential;
mod dry_run;
mod import;
mod max_wait;
mod proxies;
mod retold;
mod zones;
