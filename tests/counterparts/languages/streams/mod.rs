//! What browsers and other programs make of HTTP/2: pages that need many requests at once, uploads
//! that are refused, expectations; and what floods of frames make of the gateway.

mod expect;
mod held;
mod programs;
mod refused;
mod uploads;
mod waiting;
