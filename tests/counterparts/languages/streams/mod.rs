//! Tests of browsers and other programs over HTTP/2.
//!
//! They load pages with many requests at once, and send refused uploads, expectations, and floods
//! of frames.

mod expect;
mod held;
mod programs;
mod refused;
mod uploads;
mod waiting;
