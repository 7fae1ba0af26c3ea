//! Starts a program with a process attribute that [`Command`] cannot set.
//!
//! Such attributes are a limit, a umask, a terminal, and descriptor 3. This binary starts itself as
//! the test [`becomes_the_program`], which sets the attribute and is then replaced by the program.
//! A shell would do the same, but is another program.

use std::env;
use std::io::{stderr, stdin};
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{self, Command, Stdio};

use rustix::fs::Mode;
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{Resource, Rlimit, getrlimit, ioctl_tiocsctty, setrlimit, setsid, umask};

use super::{Gateway, Site, drip};

/// Returns a command that runs `program` after setting `attribute`.
///
/// Standard output is discarded, except on a terminal.
///
/// | `attribute` | what is set |
/// |---|---|
/// | `nofile=256` | the limits of file descriptors, soft and hard |
/// | `soft_nofile=256` | the soft limit |
/// | `umask=022` | the umask |
/// | `no_stderr` | standard error is closed |
/// | `terminal` | a new session on the terminal that is its standard input |
/// | `socket` | its standard input becomes the only socket of `LISTEN_FDS` |
pub fn launch(program: &Command, attribute: &str) -> Command {
    let mut command = Command::new(env::current_exe().expect("a program"));
    command
        .args(["--exact", "support::launch::becomes_the_program"])
        .args(["--ignored", "--", attribute])
        .arg(program.get_program())
        .args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if let Some(folder) = program.get_current_dir() {
        command.current_dir(folder);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Returns the gateway of `site` as a service manager starts it, with `socket` as descriptor 3.
pub fn handed(site: &Site, socket: impl Into<OwnedFd>) -> Command {
    let mut program = drip();
    program.arg("-c").arg(site.file());
    let mut command = launch(&program, "socket");
    command.stdin(socket.into());
    command
}

/// Starts the gateway of `site` on `socket`.
pub fn start_on(site: Site, socket: impl Into<OwnedFd>) -> Gateway {
    let command = handed(&site, socket);
    Gateway::run_as(site, command)
}

#[test]
#[ignore = "starts a program for another test"]
fn becomes_the_program() {
    let mut arguments = env::args_os().skip_while(|it| it != "--").skip(1);
    let (Some(attribute), Some(program)) = (arguments.next(), arguments.next()) else {
        return;
    };
    let mut command = Command::new(program);
    command.args(arguments);
    set(attribute.to_str().expect("text"), &mut command);
    let failed = command.exec();
    panic!("{command:?}: {failed}");
}

/// Sets an attribute of this process, and changes `command` where the attribute needs it.
fn set(attribute: &str, command: &mut Command) {
    let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
    match name {
        "nofile" | "soft_nofile" => {
            let current = Some(value.parse().expect("a number"));
            let maximum = match name {
                "nofile" => current,
                _ => getrlimit(Resource::Nofile).maximum,
            };
            setrlimit(Resource::Nofile, Rlimit { current, maximum }).expect("a lower limit");
        }
        "umask" => {
            let mask = u32::from_str_radix(value, 8).expect("octal");
            umask(Mode::from_raw_mode(mask));
        }
        "no_stderr" => fcntl_setfd(stderr(), FdFlags::CLOEXEC).expect("a descriptor"),
        "terminal" => {
            setsid().expect("a process that leads no group");
            ioctl_tiocsctty(stdin()).expect("a terminal that no session has");
            let terminal = stdin().as_fd().try_clone_to_owned();
            command.stdout(terminal.expect("a terminal"));
        }
        "socket" => {
            let socket = fcntl_dupfd_cloexec(stdin(), 3).expect("a socket");
            fcntl_setfd(&socket, FdFlags::empty()).expect("a socket");
            // From now on the program owns the descriptor.
            assert_eq!(socket.into_raw_fd(), 3, "the tests began with it open");
            command.env("LISTEN_FDS", "1");
            command.env("LISTEN_PID", process::id().to_string());
            command.stdin(Stdio::null());
        }
        _ => panic!("no such attribute: {attribute}"),
    }
}
