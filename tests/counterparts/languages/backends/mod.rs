//! What programs behind the gateway read, and what limits count: no request may be one thing here and another there.

mod programs;
mod spellings;
