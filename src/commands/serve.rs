use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::accept::Accepting;
use super::listeners::in_use;
use super::reload::Reloader;
use super::signals::{Asked, Signals};
use crate::admin::{self, Admin, Health, Live, Read, Recorder};
use crate::clock;
use crate::config::{self, FileState, Settings, Watcher};
use crate::gateway::Gateway;

/// How long connections get to take their last answer after the last waiter was sent away.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Serves until the process is told to stop and all have been answered. Tells of each gateway that comes into force.
///
/// # Errors
///
/// Where an address cannot be listened on, or the folder of the file not be watched.
pub(super) async fn serve(
    file: PathBuf,
    text: String,
    settings: Settings,
    tell: watch::Sender<Option<Arc<Gateway>>>,
) -> io::Result<()> {
    let mut signals = Signals::listen()?;
    let recorder = Recorder::install()?;
    let mut watcher = Watcher::start(file.clone(), text).map_err(io::Error::other)?;
    let health = Health::of(tell.subscribe());
    let (state, file_state) = watch::channel(FileState::loaded(clock::now()));
    let (ask, mut asked_to_read) = mpsc::channel(1);

    if let Some(address) = settings.server.admin {
        let admin = Admin {
            health: health.clone(),
            recorder,
            gateway: tell.subscribe(),
            file: file_name(&file),
            file_state,
            reload: ask,
            live: Live::default(),
            token: config::admin_token(),
        };
        let admin = admin::listen(address, admin);
        actix_rt::spawn(admin.map_err(|error| in_use(&error, &format!("server.admin {address}")))?);
    }
    let mut accepting = Accepting::start(&settings.server, tell.subscribe()).await?;
    for address in &settings.server.listen {
        tracing::info!(%address, "listening");
    }
    let reloader = Reloader::start(file, settings, accepting.workers(), tell, state)?;
    health.set_accepting(true);

    loop {
        tokio::select! {
            asked = signals.next() => match asked {
                Asked::Reload => reloader.take(watcher.read()),
                Asked::Stop => break,
            },
            changed = watcher.changed() => reloader.take(changed),
            Some(Read { done }) = asked_to_read.recv() => {
                reloader.take(watcher.read());
                // Where the asker has gone there is nobody to tell.
                let _gone = done.send(());
            }
            failed = accepting.failure() => return Err(failed),
        }
    }
    health.set_accepting(false);
    // Nobody reads the file any more, and who asks for it is told so.
    drop(asked_to_read);
    stop(reloader, accepting, &mut signals).await;
    Ok(())
}

fn file_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Stops accepting, lets the queues drain at their pace for `shutdown_timeout`, and then sends away those who still
/// wait. Being asked again ends it at once.
async fn stop(reloader: Reloader, mut accepting: Accepting, signals: &mut Signals) {
    let gateway = reloader.gateway();
    let patience = gateway.settings().server.shutdown_timeout;
    tracing::info!(?patience, "stopping: no new connections; the queues drain");
    gateway.stop();
    let ending = async move {
        accepting.close().await;
        // A queue lives on one worker, and whoever waits in it may be connected to another. So no worker is
        // ended before all connections are.
        if timeout(patience, accepting.all_gone()).await.is_err() {
            gateway.dismiss();
            let _last_answers = timeout(LAST_ANSWERS, accepting.all_gone()).await;
        }
        accepting.end().await;
        // With the gateway goes its access log, which is written to the end.
        drop(gateway);
        reloader.end();
    };
    tokio::select! {
        () = ending => {}
        () = asked_again(signals) => {}
    }
}

async fn asked_again(signals: &mut Signals) {
    while signals.next().await != Asked::Stop {}
    tracing::warn!("asked again to stop: ending at once");
}
