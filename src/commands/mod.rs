//! The commands of the program.

mod accept;
mod acceptor;
pub mod advise;
mod certificates;
pub mod check;
pub mod demo;
pub mod import;
mod listeners;
mod log;
mod reload;
pub mod run;
mod serve;
mod signals;
pub mod simulate;
pub mod top;
mod trace;
