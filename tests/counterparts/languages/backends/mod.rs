//! Tests that programs behind the gateway read a request as the limits count it.

mod programs;
mod spellings;
