//! `drip top`: the gateway's state in a terminal, updated every second.
//!
//! `feed` receives the admin port's samples through `remote::client`. `model` derives values from them,
//! `page` holds what the user has chosen, and `view` draws both. Before a `change` is sent, a
//! `question` is asked. Several gateways are shown by `fleet`.

mod change;
mod columns;
mod feed;
mod fleet;
mod keys;
mod model;
mod page;
mod question;
mod snapshot;
mod sse;
mod terminal;
mod view;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

use self::feed::News;
use self::model::Model;
use crate::config::{AdminAddress, AdminTokens};
use crate::remote::client::Lost;
use crate::time::clock;
use crate::tools::complain::complain;

/// Time to wait for the first sample of a gateway that has just started.
const FIRST: Duration = Duration::from_secs(3);

/// Shows the gateways whose admin ports are at `addresses`, until told to quit.
///
/// Shows them once, as text, if `once` is set or the output is not a terminal.
#[must_use]
pub fn top(addresses: &[AdminAddress], once: bool) -> ExitCode {
    let shown = async {
        match addresses {
            [address] => show(address, once).await,
            several => fleet::show(several, once).await,
        }
    };
    match actix_rt::System::new().block_on(shown) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader closed the pipe because it has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            complain(format_args!("drip top: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn show(address: &AdminAddress, once: bool) -> io::Result<()> {
    let tokens = AdminTokens::of_environment().map_err(io::Error::other)?;
    let tokens = Rc::new(tokens);
    let mut feed = feed::listen(address.clone(), Rc::clone(&tokens));
    let model = first(&mut feed).await.map_err(|lost| {
        if lost.is_about_tokens() {
            return io::Error::other(format!("nothing to show from {address}: {lost}"));
        }
        io::Error::other(format!(
            "nothing to show from {address}: {lost}; start the gateway, or give the address that its file has as \
             server.admin: drip top ADDRESS"
        ))
    })?;
    if !once && io::stdout().is_terminal() {
        return terminal::watch(address, tokens, feed, model).await;
    }
    let mut stdout = io::stdout();
    stdout.write_all(snapshot::text(address, &model).as_bytes())?;
    stdout.flush()
}

/// The first state that the gateway sends: all of it, or the part that arrives in time.
async fn first(feed: &mut Receiver<News>) -> Result<Model, Lost> {
    let mut model = Model::default();
    let hear = async {
        while !model.is_whole() {
            match feed.recv().await {
                Some(News::Lost(lost)) => return Err(lost),
                Some(news) => model.hear(news, clock::now()),
                None => return Err(Lost::Ended),
            }
        }
        Ok(())
    };
    match timeout(FIRST, hear).await {
        Ok(heard) => heard?,
        Err(_) if model.config.is_none() => return Err(Lost::Silent),
        Err(_) => {}
    }
    Ok(model)
}
