//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use drip::cli::{advise, check, demo, import, init, run, simulate, top};
use mimalloc::MiMalloc;

// Requests allocate on one worker and free on another, many at once. glibc keeps only seven free
// blocks of a size at hand for that: measured, it costs 7 % more for each request, and 20 % more
// with a million keys.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// A leaky-bucket queueing gateway: whatever the clients do, the backend sees a smooth stream.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    file: File,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway (the default)
    Run(File),
    /// Watch it smooth bursts, or stop a flood (--scene fair): the gateway, a sample origin and
    /// clients in one process
    Demo(demo::Wanted),
    /// Write a commented gateway.toml to start from; one that is there is not overwritten
    Init(init::Wanted),
    /// Validate the file, and print the effective settings or every problem found
    Check(File),
    /// Translate an nginx.conf into a gateway.toml, and report each line that could not be translated
    Import {
        /// The configuration file of nginx
        #[arg(value_name = "NGINX_CONF")]
        file: PathBuf,
    },
    /// Replay a trace or access log against the file: which requests would wait or be rejected
    Simulate {
        /// The configuration file
        #[command(flatten)]
        file: File,
        #[command(flatten)]
        wanted: simulate::Wanted,
    },
    /// Recommend rate and burst from the traffic of access logs
    Advise(advise::Wanted),
    /// Show the live page in a terminal; if the output is not a terminal, print it once
    ///
    /// `?` lists the keys. To change something (pause, rate, dry run, reload) where the gateway has a
    /// `DRIP_ADMIN_TOKEN`, start drip top with the same variable.
    Top {
        /// The address of a gateway's admin port
        #[arg(value_name = "ADMIN_ADDRESS", default_value = "127.0.0.1:9090")]
        address: top::Address,
    },
}

#[derive(Debug, Args)]
struct File {
    /// The configuration file
    #[arg(
        short,
        long = "config",
        value_name = "FILE",
        default_value = "gateway.toml"
    )]
    config: PathBuf,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.command.unwrap_or(Command::Run(cli.file)) {
        Command::Run(file) => run::run(&file.config),
        Command::Demo(wanted) => demo::demo(&wanted),
        Command::Init(wanted) => init::init(&wanted),
        Command::Check(file) => check::check(&file.config),
        Command::Import { file } => import::import(&file),
        Command::Simulate { file, wanted } => simulate::simulate(&file.config, &wanted),
        Command::Advise(wanted) => advise::advise(&wanted),
        Command::Top { address } => top::top(&address),
    }
}
