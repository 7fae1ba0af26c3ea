//! `drip demo`: shows live what the gateway does.
//!
//! One process runs the gateway, a sample origin and clients. The clients and the origin count
//! the requests; the numbers do not come from the gateway. A scene is what the clients do, and what
//! the terminal shows: `smooth` or `fair`. `stage` runs it.

mod config_file;
mod crowd;
mod fair;
mod origin;
mod pace;
mod picture;
mod smooth;
mod stage;
mod tally;

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::output::exit_code;

/// The arguments of `drip demo`.
#[derive(Debug, Args)]
pub struct DemoArguments {
    /// Scene to show
    #[arg(long, value_enum, default_value_t = Scene::Smooth)]
    scene: Scene,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Scene {
    /// Bursts come in, an even stream goes out, until Ctrl-C
    Smooth,
    /// One client floods a backend and nine do not, first without `share`, then with it; 16 seconds
    Fair,
}

/// Plays a scene until it ends or is interrupted.
pub fn demo(arguments: &DemoArguments) -> ExitCode {
    let played = actix_rt::System::new().block_on(async {
        match arguments.scene {
            Scene::Smooth => Box::pin(smooth::play()).await,
            Scene::Fair => Box::pin(fair::play()).await,
        }
    });
    exit_code("drip", played)
}
