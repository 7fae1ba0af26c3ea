//! `drip demo`: what the gateway does, shown live.
//!
//! One process runs the gateway, a sample origin and clients. The clients and the origin count
//! what is shown; the numbers do not come from the gateway.

mod aim;
mod crowd;
mod fair;
mod origin;
mod picture;
mod place;
mod screen;
mod smooth;
mod stage;
mod tally;
mod words;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::server;

/// The file of the scene `smooth`, if none is named.
const FILE: &str = "gateway.toml";

/// The arguments of `drip demo`.
#[derive(Debug, Args)]
pub struct Wanted {
    /// The configuration file of the scene `smooth` [default: gateway.toml]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What to show
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
#[must_use]
pub fn demo(wanted: &Wanted) -> ExitCode {
    let system = actix_rt::System::new();
    let ended = match (wanted.scene, &wanted.config) {
        (Scene::Smooth, file) => {
            let file = file.as_deref().unwrap_or(Path::new(FILE));
            match server::load(file) {
                Ok(loaded) => system.block_on(smooth::play(loaded)),
                Err(error) => {
                    eprintln!("{error}");
                    return ExitCode::FAILURE;
                }
            }
        }
        (Scene::Fair, None) => system.block_on(fair::play()),
        (Scene::Fair, Some(_)) => Err(io::Error::other(
            "the scene fair writes a file of its own; leave out -c",
        )),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        // The reader closed the pipe because it has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("drip: {error}");
            ExitCode::FAILURE
        }
    }
}
