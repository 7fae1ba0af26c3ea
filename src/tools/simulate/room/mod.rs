//! `drip simulate --visitors`: what visitors see before the waiting room of an origin.

mod arguments;
mod chart;
mod crowd;
mod report;
mod run;
mod tally;
mod visit;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use thiserror::Error;

use self::crowd::VisitorCrowd;
use self::report::Column;
use self::run::RoomRun;
use super::SimulateArguments;
use crate::config::{self, Settings};
use crate::limit::{Moment, Rate, RoomLimits};
use crate::tools::complain::complain;
pub(super) use arguments::VisitorArguments;

/// Why a file has no room to simulate.
#[derive(Debug, Error)]
enum RoomError {
    #[error("no origin has a waiting room; add [origins.{0}.room], or replay a trace")]
    None(String),
    #[error("several origins have a waiting room ({0}); name one with --room")]
    Several(String),
    #[error("origin {name} has no waiting room; these have one: {rooms}")]
    Other { name: String, rooms: String },
    #[error("the room of {0} has no opens, and --early says how long before it visitors come")]
    NeverOpens(String),
}

/// Simulates the visitors that `wanted` describes before the room of each file.
pub(super) fn simulate(
    files: &[(&Path, Settings)],
    names: &[String],
    wanted: &SimulateArguments,
) -> ExitCode {
    let crowd = match wanted.visitors.crowd() {
        Ok(Some(crowd)) => crowd,
        Ok(None) => return ExitCode::FAILURE,
        Err(error) => {
            complain(error);
            return ExitCode::FAILURE;
        }
    };
    let mut columns = Vec::new();
    for ((file, settings), name) in files.iter().zip(names) {
        match room(settings, wanted.visitors.room(), &crowd) {
            Ok((origin, limits)) => columns.push(Column {
                file: name,
                origin,
                limits,
                result: RoomRun::new(limits, &crowd).run(),
            }),
            Err(error) => {
                complain(format_args!("{}: {error}", file.display()));
                return ExitCode::FAILURE;
            }
        }
    }
    let is_drawn = wanted.plot.as_deref().is_none_or(|to| draw(&columns, to));
    let written = if wanted.has_rows() {
        let first = columns.first();
        first.map_or(Ok(()), |column| report::rows(&column.result.visits))
    } else {
        let text = report::summary(&crowd, &columns);
        io::stdout().write_all(text.as_bytes())
    };
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(format_args!("drip: {error}"));
            ExitCode::FAILURE
        }
        _ if is_drawn => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// The room of a file: the name of its origin, and what bounds it. `named`: of which origin.
fn room<'a>(
    settings: &'a Settings,
    named: Option<&str>,
    crowd: &VisitorCrowd,
) -> Result<(&'a str, RoomLimits), RoomError> {
    let origins = settings.origins.iter();
    let rooms = origins.filter_map(|origin| Some((origin.name.as_str(), origin.room.as_ref()?)));
    let rooms: Vec<_> = rooms.collect();
    let all = || {
        let all: Vec<_> = rooms.iter().map(|(name, _)| *name).collect();
        all.join(", ")
    };
    let Some(first) = rooms.first() else {
        let origin = settings.origins.first();
        let name = origin.map_or("NAME", |origin| &origin.name);
        return Err(RoomError::None(name.to_owned()));
    };
    let (name, room) = match named {
        Some(named) => rooms
            .iter()
            .find(|(name, _)| *name == named)
            .ok_or_else(|| {
                let name = named.to_owned();
                RoomError::Other { name, rooms: all() }
            })?,
        None if rooms.len() > 1 => return Err(RoomError::Several(all())),
        None => first,
    };
    if crowd.early.is_some() && room.opens.is_none() {
        return Err(RoomError::NeverOpens((*name).to_owned()));
    }
    Ok((name, limits(room, crowd.opens())))
}

fn limits(room: &config::Room, opens: Option<Moment>) -> RoomLimits {
    RoomLimits {
        sessions: room.sessions,
        admit: room.admit.unwrap_or(Rate::UNLIMITED),
        idle: room.idle,
        claim: room.claim,
        opens,
        is_paused: false,
    }
}

fn draw(columns: &[Column<'_>], file: &Path) -> bool {
    let drawn = chart::chart(columns).save(file);
    if let Err(error) = &drawn {
        complain(format_args!("{}: {error}", file.display()));
    }
    drawn.is_ok()
}
