//! `drip demo`: what the gateway does, shown live.
//!
//! One process runs the gateway, a sample origin and clients. The clients and the origin count
//! what is shown; the numbers do not come from the gateway.

mod addresses;
mod aim;
mod crowd;
mod fair;
mod origin;
mod own_file;
mod picture;
mod place;
mod screen;
mod smooth;
mod stage;
mod tally;
mod words;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use config::LoadError;
use gateway::server;
use thiserror::Error;

use self::own_file::OwnFile;
use crate::complain::complain;
use crate::starter;

/// The file of the scene `smooth`, if none is named and it is there.
const FILE: &str = "gateway.toml";

/// The arguments of `drip demo`.
#[derive(Debug, Args)]
pub struct DemoArguments {
    /// The configuration file of the scene `smooth` [default: gateway.toml; if there is none, the
    /// demo writes one]
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

/// The ports of the demo's own file, as in every example: gateway, admin port and origin.
const PORTS: [u16; 3] = [8080, 9090, 9000];

/// Why a scene ended early.
#[derive(Debug, Error)]
enum Failure {
    #[error(transparent)]
    File(#[from] LoadError),
    #[error("drip: {0}")]
    Other(#[from] io::Error),
}

/// Plays a scene until it ends or is interrupted.
#[must_use]
pub fn demo(wanted: &DemoArguments) -> ExitCode {
    let system = actix_rt::System::new();
    match system.block_on(play(wanted)) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader closed the pipe because it has read enough.
        Err(Failure::Other(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

async fn play(wanted: &DemoArguments) -> Result<(), Failure> {
    match (wanted.scene, &wanted.config) {
        (Scene::Smooth, Some(file)) => smooth(file).await,
        (Scene::Smooth, None) if is_there(Path::new(FILE)) => {
            let ended = smooth(Path::new(FILE)).await;
            ended.inspect_err(|_| {
                complain(format_args!(
                    "(in a folder without {FILE}, the demo uses a file of its own)"
                ));
            })
        }
        (Scene::Smooth, None) => smooth_on_own_file().await,
        (Scene::Fair, None) => Ok(Box::pin(fair::play()).await?),
        (Scene::Fair, Some(_)) => Err(Failure::Other(io::Error::other(
            "the scene fair writes a file of its own; leave out -c",
        ))),
    }
}

/// Whether there is such a file. One that cannot be read is there, too.
fn is_there(file: &Path) -> bool {
    let found = fs::symlink_metadata(file);
    found.map_or_else(|error| error.kind() != io::ErrorKind::NotFound, |_| true)
}

async fn smooth(file: &Path) -> Result<(), Failure> {
    let loaded = server::load_to_start(file)?;
    Ok(Box::pin(smooth::play(loaded)).await?)
}

async fn smooth_on_own_file() -> Result<(), Failure> {
    let [gateway, admin, origin] = addresses::free_or_other(PORTS)?;
    let text = starter::with_addresses(
        &gateway.to_string(),
        &admin.to_string(),
        &format!("http://{origin}"),
    );
    let file = OwnFile::create(&text)?;
    smooth(file.path()).await?;
    Ok(screen::say("to keep a file like this one: `drip init`")?)
}
