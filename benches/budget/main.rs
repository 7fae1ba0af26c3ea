//! Compares the cost of requests and of retained state with the budget in `benches/budget.toml`.
//!
//! `cargo bench --profile dev --bench budget` builds the program as packages have it, measures it,
//! and fails if a figure is above its budget. `-- --write` writes the figures into the budget.
//! `-- --thin` measures a build with thin LTO; only its instructions have a separate budget.
//! `-- proxied,parked_key` measures single figures. Instructions are counted by valgrind's
//! callgrind, so they do not depend on how busy the machine is.

mod functions;
mod gateway;
mod limits;
mod memory;
mod profile;
mod requests;
mod sizes;
// Shared with the other benches, which use other parts of it.
#[allow(dead_code)]
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use gateway::Origins;
use tokio::runtime::{self, Runtime};

use functions::Functions;
use limits::{Figures, Group, Row, Verdict};
use support::origin::Origin;
use support::{placement, process};

/// Compares the cost of requests and of retained state with the budget.
#[derive(Debug, Parser)]
#[command(name = "budget")]
struct Arguments {
    /// Names of figures, separated by commas; all by default
    #[arg(value_delimiter = ',')]
    names: Vec<String>,
    /// Write what is measured into benches/budget.toml
    #[arg(long)]
    write: bool,
    /// Measure a build with thin LTO, by the budget `thin_instructions`
    #[arg(long)]
    thin: bool,
    /// A copy of target/budget/functions of an earlier run, to print which functions changed
    #[arg(long, value_name = "FOLDER")]
    before: Option<PathBuf>,
    /// Measure this program, and do not build it
    #[arg(long)]
    program: Option<PathBuf>,
    // Added by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Arguments {
    fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|requested| requested == name)
    }

    /// Returns the group of the instructions of the measured build.
    fn instructions(&self) -> Group {
        if self.thin {
            Group::ThinInstructions
        } else {
            Group::Instructions
        }
    }

    /// Returns whether this run measures a figure.
    fn measures(&self, group: Group, name: &str) -> bool {
        let is_of_build = match group {
            Group::Instructions | Group::ThinInstructions => group == self.instructions(),
            _ => true,
        };
        is_of_build && self.wants(name)
    }
}

/// State that all measurements share.
struct Bench {
    arguments: Arguments,
    program: PathBuf,
    origins: Origins,
    functions: Functions,
    runtime: Runtime,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether no figure is above its budget.
fn run(arguments: Arguments) -> io::Result<bool> {
    process::stop_programs_on_signal();
    if process::find("valgrind").is_none() {
        return Err(io::Error::other(
            "valgrind is not here; install it, on Debian the package valgrind",
        ));
    }
    let program = match &arguments.program {
        Some(program) => fs::canonicalize(program)?,
        None => gateway::build(if arguments.thin { "thin" } else { "profiling" })?,
    };
    placement::raise_descriptor_limit();
    let bench = Bench {
        program,
        origins: Origins {
            quick: Origin::start()?.address,
            slow: Origin::answering_after(gateway::SLOW)?.address,
        },
        functions: Functions {
            written: gateway::folder().join("functions"),
            before: arguments.before.clone(),
        },
        runtime: runtime::Builder::new_current_thread()
            .enable_all()
            .build()?,
        arguments,
    };
    let mut measured = Figures::new();
    println!("instructions, allocations and clock reads:");
    requests::measure(&bench, &mut measured)?;
    println!("memory:");
    memory::measure(&bench, &mut measured)?;
    sizes::measure(&mut measured);
    conclude(&bench.arguments, &measured)
}

fn conclude(arguments: &Arguments, measured: &Figures) -> io::Result<bool> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/budget.toml");
    let invalid = |error: String| io::Error::other(format!("{}: {error}", file.display()));
    let mut budget = match fs::read_to_string(&file) {
        Ok(text) => limits::parse(&text).map_err(invalid)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Figures::new(),
        Err(error) => return Err(error),
    };
    if arguments.write {
        if arguments.names.is_empty() {
            budget.retain(|(group, name), _| !arguments.measures(*group, name));
        }
        budget.extend(measured.clone());
        fs::write(&file, limits::write(&budget))?;
        println!("written: {}", file.display());
    }
    let rows = limits::rows(&budget, measured, |group, name| {
        arguments.measures(group, name)
    });
    for group in Group::ALL {
        println!("\n{}", group.name());
        for row in rows.iter().filter(|row| row.group == group) {
            println!("{}", row.table_line());
        }
    }
    let with_verdict = |verdict| {
        rows.iter()
            .filter(move |row: &&Row| row.verdict() == verdict)
    };
    if with_verdict(Verdict::Below).next().is_some() {
        println!("\nbelow the budget; the lines to commit in benches/budget.toml:");
        for row in with_verdict(Verdict::Below) {
            println!("{}", row.line());
        }
    }
    for row in with_verdict(Verdict::Above) {
        println!("ABOVE THE BUDGET: {row}");
    }
    Ok(with_verdict(Verdict::Above).next().is_none())
}
