//! The arguments of `drip simulate`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use gateway::replay::Form;

use crate::trace::form;

/// The arguments of `drip simulate`, besides the configuration file.
#[derive(Debug, Args)]
pub struct SimulateArguments {
    /// Print how many requests are delayed and rejected, and of which keys [default on a terminal]
    #[arg(long)]
    pub(super) summary: bool,
    /// Print a line of CSV for each request [default into a pipe or file]
    #[arg(long, conflicts_with = "summary")]
    pub(super) rows: bool,
    /// Draw arrivals, waiting requests and departures over time
    #[arg(long, value_name = "FILE.svg", value_parser = svg_path())]
    pub(super) plot: Option<PathBuf>,
    /// The format of the trace; combined is that of nginx and Apache, json that of drip and nginx
    /// [default: detected from the first lines]
    #[arg(long, value_name = "FORMAT", value_parser = form())]
    pub(super) format: Option<Form>,
    /// CSV lines `time_seconds,key[,route_path[,cost]]`, or an access log of drip, nginx, Apache,
    /// HAProxy, Caddy, Traefik or an ALB; plain or compressed by gzip; - for standard input
    pub(super) trace: PathBuf,
}

/// Returns a parser of paths that must end in `.svg`.
///
/// Any other name is a mistake: another format of pictures, or a log that would be overwritten.
fn svg_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        let extension = path.extension().unwrap_or_default();
        let is_svg = extension.eq_ignore_ascii_case("svg");
        is_svg
            .then_some(path)
            .ok_or("plots are SVG; the name must end in .svg")
    })
}
