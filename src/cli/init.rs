//! `drip init`: writes a `gateway.toml` to start from.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use config::{self, DEFAULT_FILE, KeyTemplate, is_printable};
use gateway::replay::Trace;
use tools::advise::{self, Advice, MAX_KEYS, Survey};
use tools::output::exit_code;
use tools::sample_file;

use super::import;

/// Arguments of `drip init`.
#[derive(Debug, Args)]
pub struct InitArguments {
    /// The origin, such as `http://127.0.0.1:9000`
    #[arg(long, value_name = "URL")]
    origin: Option<String>,
    /// An nginx.conf to translate, or an access log to take the numbers from
    #[arg(long, value_name = "NGINX_CONF|ACCESS_LOG")]
    from: Option<PathBuf>,
    /// The file to write; - for standard output
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE)]
    file: PathBuf,
}

/// Title of the table that gets the line for the admin port.
const SERVER_TITLE: &str = "[server]";
/// Line for the admin port.
const ADMIN_LINE: &str =
    "admin = \"127.0.0.1:9090\"    # the live page, metrics and API; \"off\" for none";

/// Writes the file. Never overwrites an existing file.
pub fn init(arguments: &InitArguments) -> ExitCode {
    let saved = text(arguments).and_then(|text| save(&arguments.file, &text));
    exit_code("drip", saved)
}

/// Returns the text to write. `drip check` accepts it.
fn text(arguments: &InitArguments) -> io::Result<String> {
    let origin = arguments.origin.as_deref().map(normal_origin).transpose()?;
    let origin = origin.as_deref();
    if let Some(origin) = origin {
        let valid = check(&sample_file::with_origin(origin));
        valid.map_err(|why| io::Error::other(format!("--origin {origin}: {why}")))?;
    }
    let text = match &arguments.from {
        None => origin.map_or_else(sample_file::text, sample_file::with_origin),
        Some(from) if is_log(from)? => from_log(from, origin, &arguments.file)?,
        Some(from) => from_nginx(from, origin)?,
    };
    check(&text).map_err(io::Error::other)?;
    Ok(text)
}

/// Lowercases the scheme of a URL, and removes a `/` at its end. The caller checks the rest.
///
/// # Errors
///
/// Returns an error if the part after the scheme is not ASCII.
fn normal_origin(url: &str) -> io::Result<String> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Ok(url.to_owned());
    };
    if !rest.is_ascii() {
        return Err(io::Error::other(format!(
            "--origin {url}: write the host in ASCII: münchen.example is xn--mnchen-3ya.example"
        )));
    }
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    Ok(format!("{}://{rest}", scheme.to_ascii_lowercase()))
}

/// Checks a text. Returns its first problem as the error.
fn check(text: &str) -> Result<(), String> {
    let parsed = config::parse(text, Path::new("gateway.toml"), config::has_admin_token());
    let Err(problems) = parsed else {
        return Ok(());
    };
    match problems.problems.first() {
        Some(first) => Err(first.message.clone()),
        None => Err(problems.to_string()),
    }
}

/// Returns whether a file is an access log: one of its first lines is a request.
fn is_log(file: &Path) -> io::Result<bool> {
    let add_name =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
    let metadata = fs::metadata(file).map_err(add_name)?;
    if !metadata.is_file() {
        let why = io::Error::other("not a regular file, and init reads it twice");
        return Err(add_name(why));
    }
    let input = File::open(file).map_err(add_name)?;
    let mut trace = Trace::new(Box::new(input), None).map_err(add_name)?;
    Ok(trace.first_time().map_err(add_name)?.is_some())
}

/// Translates an nginx.conf, and adds the admin port.
fn from_nginx(file: &Path, origin: Option<&str>) -> io::Result<String> {
    if origin.is_some() {
        return Err(io::Error::other(format!(
            "{} is read as an nginx.conf, which names its own origins: remove --origin",
            file.display()
        )));
    }
    let name = file.display();
    let settings = import::translated(file).ok_or_else(|| {
        io::Error::other(format!(
            "{name} is neither an nginx.conf to translate nor an access log"
        ))
    })?;
    let settings = if settings.lines().any(|line| line == SERVER_TITLE) {
        settings.replacen(
            &format!("{SERVER_TITLE}\n"),
            &format!("{SERVER_TITLE}\n{ADMIN_LINE}\n"),
            1,
        )
    } else {
        format!("{SERVER_TITLE}\n{ADMIN_LINE}\n\n{settings}")
    };
    Ok(format!(
        "# Translated from {}. Check each comment that names one of its lines.\n\
         # Saved changes take effect at once; `drip check --all` shows every value in force.\n\n{settings}",
        printable(file)
    ))
}

/// Makes a file with the recommended numbers for an access log.
fn from_log(log: &Path, origin: Option<&str>, file: &Path) -> io::Result<String> {
    let key: KeyTemplate = "$remote_addr".parse().map_err(io::Error::other)?;
    let mut survey = Survey::new(key, MAX_KEYS)?;
    advise::read(&[log.to_owned()], None, &mut survey)?;
    let advice = Advice::new(survey)?;
    let name = printable(log);
    // Commands find the default file without an option.
    let option = if [Path::new("-"), Path::new(DEFAULT_FILE)].contains(&file) {
        String::new()
    } else {
        format!(" -c {}", printable(file))
    };
    let text = advice.map(|advice| advise::gateway_toml(&advice, &name, &option, origin));
    text.ok_or_else(|| {
        io::Error::other(format!(
            "{name}: no request has a client address, so no limits can be computed: try `drip advise --key`"
        ))
    })
}

/// Returns the name of a file, for use in a comment.
fn printable(file: &Path) -> String {
    let name = file.display().to_string();
    name.replace(|c: char| !is_printable(c), "?")
}

/// Writes a new file, or prints the text if the name is `-`.
fn save(file: &Path, text: &str) -> io::Result<()> {
    if file == Path::new("-") {
        return io::stdout().write_all(text.as_bytes());
    }
    let name = file.display();
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    let mut opened = opened.map_err(|error| {
        let text = match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("{name} exists and is not overwritten: name another file, or - to print")
            }
            _ => format!("{name}: {error}"),
        };
        io::Error::new(error.kind(), text)
    })?;
    opened.write_all(text.as_bytes())?;
    opened.sync_all()?;
    writeln!(
        io::stdout(),
        "wrote {name}: `drip check --all -c {name}` shows all values, `drip -c {name}` runs it"
    )
}
