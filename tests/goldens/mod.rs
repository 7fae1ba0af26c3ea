//! What commands say, compared with the files beside this one. `DRIP_UPDATE_GOLDENS=1` writes them anew.
//!
//! `tests/counterparts/redis/goldens` compares what a running gateway shows.

mod files;
mod golden;
