//! Shows in pictures how requests are limited under load.
//!
//! The scenes are: a backend that fails under load without drip, a rate that changes while requests
//! wait, one client that floods the backend behind drip and behind other proxies, and each
//! algorithm on the same bursts.
//!
//! `cargo bench --bench load_test` runs the real gateway before a real backend for two and a half
//! minutes, and writes benches/load-test.md and its plots. `-- --quick` plays shorter scenes and
//! writes nothing.

mod algorithms;
mod backend;
mod calls;
mod flood;
mod fragile;
mod gateway;
mod pictures;
mod proxies;
mod retune;
mod scene;
mod story;
// Shared with the comparison, which uses other parts of it.
#[allow(dead_code)]
#[path = "../support/mod.rs"]
mod support;

use std::io;
use std::process::ExitCode;

use support::{arguments, machine, page, placement, process};

const PAGE: &str = "load-test.md";

/// A scene's part of the page: its name there, its table, and its pictures.
struct Played {
    part: &'static str,
    table: String,
    pictures: Vec<(&'static str, support::plot::Chart)>,
}

fn main() -> ExitCode {
    arguments::run(play)
}

fn play(quick: bool) -> io::Result<()> {
    process::stop_programs_on_signal();
    placement::raise_descriptor_limit();
    println!(
        "about {}",
        if quick {
            "a minute"
        } else {
            "two and a half minutes"
        }
    );
    // Fraction of the full length. A quick run only checks that the test works.
    let length = if quick { 0.4 } else { 1.0 };
    let about = format!(
        "{}; drip {}.",
        machine::describe(),
        env!("CARGO_PKG_VERSION")
    );
    let scenes = [fragile::play, retune::play, flood::play, algorithms::play];
    for play in scenes {
        let played = play(length, &about)?;
        println!("\n{}", played.table);
        if quick {
            continue;
        }
        page::replace(&page::path(PAGE), played.part, &played.table)?;
        for (name, picture) in played.pictures {
            picture.save(page::path("plots").join(name))?;
        }
    }
    if quick {
        println!("a quick run: benches/{PAGE} and its plots stay as they are");
        return Ok(());
    }
    page::replace(&page::path(PAGE), "machine", &about)?;
    println!("written: benches/{PAGE}, benches/plots");
    Ok(())
}
