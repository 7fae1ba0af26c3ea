//! `drip top`: shows the state of a gateway as tables, once or every second.
//!
//! `tables` formats the responses of the admin port with the help of `cells`, and `screen` controls
//! the terminal.

mod cells;
mod screen;
mod tables;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use awc::http::StatusCode;
use config::{AdminAddress, AdminTokens};
use gateway::server::signals::Signals;
use gateway::time::clock;
use serde_json::Value;
use tokio::time::sleep;

use self::screen::Screen;
use crate::admin_client::{AdminError, Client};
use crate::output::{exit_code, write};

/// Interval between two reads.
const INTERVAL: Duration = Duration::from_secs(1);

/// Responses of the admin port.
#[derive(Debug, Default)]
struct State {
    config: Value,
    /// Sample of the last second. Null in the first second of a gateway.
    sample: Value,
    zones: Value,
    origins: Value,
}

impl State {
    /// Reads all resources.
    async fn read(client: &Client) -> Result<Self, AdminError> {
        let sample = client.read("/api/now").await?;
        let mut zones: Value = client.read("/api/zones").await?;
        let mut origins: Value = client.read("/api/origins").await?;
        Ok(Self {
            config: client.read("/api/config").await?,
            sample,
            zones: zones["zones"].take(),
            origins: origins["origins"].take(),
        })
    }
}

/// Shows the gateway whose admin port is at `address`, until the user quits.
///
/// Shows it once if `once` is set or standard output is not a terminal.
pub fn top(address: &AdminAddress, once: bool) -> ExitCode {
    let result = actix_rt::System::new().block_on(show(address, once));
    exit_code("drip top", result)
}

/// Shows the gateway. See [`top`].
async fn show(address: &AdminAddress, once: bool) -> io::Result<()> {
    let tokens = AdminTokens::from_environment().map_err(io::Error::other)?;
    let client = Client::new(address.clone(), tokens);
    let state = read_first(&client).await.map_err(|error| {
        let remedy = match error.status {
            // The error names the remedy.
            Some(StatusCode::UNAUTHORIZED) => "",
            _ => "; start the gateway, or give the address that its file has as server.admin: drip top ADDRESS",
        };
        io::Error::other(format!("cannot read {address}: {error}{remedy}"))
    })?;
    let text = tables::text(address, &state);
    if !once && io::stdout().is_terminal() {
        return watch(address, &client, text).await;
    }
    write(&text)
}

/// Returns the first state. If the gateway has no sample yet, reads again after a second.
async fn read_first(client: &Client) -> Result<State, AdminError> {
    let state = State::read(client).await?;
    if !state.sample.is_null() {
        return Ok(state);
    }
    sleep(INTERVAL).await;
    State::read(client).await
}

/// Draws the state every second until the user quits. `text`: the first state.
async fn watch(address: &AdminAddress, client: &Client, mut text: String) -> io::Result<()> {
    let mut signals = Signals::listen()?;
    let mut screen = Screen::open()?;
    let mut silent_since = None;
    let mut warning = String::new();
    loop {
        Screen::draw(&format!("{warning}{text}"))?;
        let read = async {
            sleep(INTERVAL).await;
            State::read(client).await
        };
        let read = tokio::select! {
            // Any signal ends the command, including the hang-up of a terminal.
            _ = signals.next() => return Ok(()),
            () = screen.quit() => return Ok(()),
            read = read => read,
        };
        match read {
            Ok(state) => {
                text = tables::text(address, &state);
                (silent_since, warning) = (None, String::new());
            }
            Err(error) => {
                let since = *silent_since.get_or_insert_with(clock::now);
                let seconds = clock::now().since(since).as_secs();
                warning = format!("no answer for {seconds} s, trying again: {error}\n");
            }
        }
    }
}
