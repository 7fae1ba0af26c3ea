//! **drip**: the command line of an async, actor-based leaky-bucket queueing gateway.
//!
//! The subcommands are in `cli`, the gateway itself in `gateway`.

mod cli;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand};
use cli::{advise, check, demo, find, health, import, init, run, schema, simulate, top};
use config::{AdminAddress, DEFAULT_FILE};
// Linking mimalloc replaces libc's allocator (its feature `override`). Requests allocate on one
// worker and free on another, many at once. glibc keeps only seven free blocks of a size ready for
// this. Measured: glibc costs 7 % more per request, and 20 % more with a million keys. As a
// `#[global_allocator]`, mimalloc would be asked for seven bytes more than needed for three of the
// eight blocks of a request, and would take its slow path for them.
use mimalloc as _;

/// A leaky-bucket queueing gateway: whatever the clients do, the backend sees a smooth stream.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    file: File,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway (the default)
    Run(FileArgument),
    /// Show how the gateway smooths bursts, or stops a flood (--scene fair): runs the gateway, a
    /// sample origin and clients in one process
    Demo(demo::DemoArguments),
    /// Write a commented gateway.toml to start from; an existing file is not overwritten
    Init(init::InitArguments),
    /// Validate the file, and print every problem found
    Check {
        #[command(flatten)]
        file: FileArgument,
        /// Print all settings in force, too
        #[arg(long, conflicts_with = "json")]
        all: bool,
        /// Print the problems as JSON, on standard output
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of a file, with which editors complete and check it
    Schema,
    /// Translate an nginx.conf or Ingress objects, and report each line that could not be
    /// translated
    Import {
        /// The configuration file of nginx, or a manifest of Kubernetes (.yaml, .yml, .json)
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Replay a trace or access log against the file: which requests would wait or be rejected
    Simulate {
        /// The configuration file
        #[command(flatten)]
        file: File,
        #[command(flatten)]
        arguments: simulate::SimulateArguments,
    },
    /// Recommend rate and burst from the traffic of access logs
    Advise(advise::AdviseArguments),
    /// Show a gateway in a terminal every second; if the output is not a terminal, print it once
    ///
    /// `q` quits. Where the gateway has a `DRIP_ADMIN_READ_TOKEN`, start drip top with the same
    /// variable.
    Top {
        /// The address of its admin port
        #[arg(value_name = "ADMIN_ADDRESS", default_value = "127.0.0.1:9090")]
        address: AdminAddress,
        /// Print the state once as text, also in a terminal
        #[arg(long)]
        once: bool,
    },
    /// Find the capacity of an origin: raise its rate on real traffic until the objective breaks,
    /// then restore the rate of the file
    ///
    /// The experiment runs in the gateway, as long as this command does. Where the gateway has a
    /// `DRIP_ADMIN_TOKEN`, start drip find with the same variable.
    Find(find::FindArguments),
    /// Check whether a running gateway is ready (exit status 0) or not (1)
    Health {
        #[command(flatten)]
        file: File,
        /// Check whether the process works, not whether it is ready: for checks that restart it
        #[arg(long)]
        live: bool,
        /// The address of its admin port, if it is not the one in the file
        #[arg(value_name = "ADMIN_ADDRESS")]
        address: Option<AdminAddress>,
    },
}

#[derive(Debug, Args)]
struct File {
    /// The configuration file [default: gateway.toml]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Path of the configuration file, with or without `-c`.
#[derive(Debug, Args)]
struct FileArgument {
    /// The configuration file [default: gateway.toml]
    #[arg(value_name = "FILE", conflicts_with = "config")]
    file: Option<PathBuf>,
    /// The configuration file, as [FILE] names it
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl FileArgument {
    fn path(self) -> Option<PathBuf> {
        self.file.or(self.config)
    }
}

/// Ends the process with a usage error, as for any wrong command line.
fn refuse(why: &str) -> ! {
    Cli::command()
        .error(ErrorKind::ArgumentConflict, why)
        .exit()
}

/// Ends the process with a usage error if `-c` stands before a command that takes no file.
fn refuse_file_before(command: &Command) {
    match command {
        Command::Run(_)
        | Command::Check { .. }
        | Command::Simulate { .. }
        | Command::Health { .. } => {}
        Command::Advise(_) => {
            refuse("write -c FILE after advise: drip advise -c FILE --zone NAME ACCESS_LOG")
        }
        _ => refuse("this command reads no configuration file: remove -c FILE"),
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let file_before_command = cli.file.config;
    if let (Some(_), Some(command)) = (&file_before_command, &cli.command) {
        refuse_file_before(command);
    }
    // Returns the path given after the command, else the path before it, else the default.
    let file = |after_command: Option<PathBuf>| {
        if file_before_command.is_some() && after_command.is_some() {
            refuse(
                "the configuration file is given twice, before and after the command: remove one",
            );
        }
        let given = file_before_command.or(after_command);
        given.unwrap_or_else(|| DEFAULT_FILE.into())
    };
    let Some(command) = cli.command else {
        return run::run(&file(None));
    };
    match command {
        Command::Run(named) => run::run(&file(named.path())),
        Command::Demo(arguments) => demo::demo(&arguments),
        Command::Init(arguments) => init::init(&arguments),
        Command::Check {
            file: named,
            all,
            json,
        } => {
            let form = match (all, json) {
                (_, true) => check::Form::Json,
                (true, false) => check::Form::All,
                (false, false) => check::Form::Summary,
            };
            check::check(&file(named.path()), form)
        }
        Command::Schema => schema::schema(),
        Command::Import { file } => import::import(&file),
        Command::Simulate {
            file: named,
            arguments,
        } => simulate::simulate(&file(named.config), &arguments),
        Command::Advise(arguments) => advise::advise(&arguments),
        Command::Top { address, once } => top::top(&address, once),
        Command::Find(arguments) => find::find(&arguments),
        Command::Health {
            file: named,
            live,
            address,
        } => health::health(address.as_ref(), &file(named.config), live),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use clap_complete::Shell;

    use super::*;

    #[test]
    fn packaged_man_pages_and_completions_are_current() {
        let generated = tempfile::tempdir().unwrap();
        let [man, completions] = ["man", "completions"].map(|name| generated.path().join(name));
        fs::create_dir(&man).unwrap();
        fs::create_dir(&completions).unwrap();
        clap_mangen::generate_to(Cli::command(), &man).unwrap();
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            clap_complete::generate_to(shell, &mut Cli::command(), "drip", &completions).unwrap();
        }
        let packaged = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging");
        let update = std::env::var_os("DRIP_UPDATE_PAGES").is_some();
        for folder in [&man, &completions] {
            let packaged = packaged.join(folder.file_name().unwrap());
            if update {
                let _none = fs::remove_dir_all(&packaged);
                fs::create_dir_all(&packaged).unwrap();
            }
            for file in fs::read_dir(folder).unwrap() {
                let file = file.unwrap();
                let packaged = packaged.join(file.file_name());
                if update {
                    fs::copy(file.path(), &packaged).unwrap();
                }
                assert!(
                    fs::read(file.path()).unwrap() == fs::read(&packaged).unwrap_or_default(),
                    "{} is not up to date: DRIP_UPDATE_PAGES=1 cargo test --bin drip",
                    packaged.display()
                );
            }
            assert_eq!(
                fs::read_dir(folder).unwrap().count(),
                fs::read_dir(&packaged).unwrap().count(),
                "{} has other files",
                packaged.display()
            );
        }
    }
}
