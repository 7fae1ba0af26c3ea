use std::cell::RefCell;
use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use actix_rt::ArbiterHandle;
use tokio::sync::watch;

use crate::config::{self, FileState, LoadError, Problem, Settings};
use crate::http::gateway::Gateway;
use crate::http::upstream::Prober;
use crate::observe::access::AccessLog;
use crate::observe::metrics::ConfigMetrics;
use crate::time::clock;

/// Puts a changed file into force.
#[derive(Debug)]
pub(super) struct Reloader {
    file: PathBuf,
    workers: Vec<ArbiterHandle>,
    in_force: RefCell<Arc<Gateway>>,
    tell: watch::Sender<Option<Arc<Gateway>>>,
    metrics: ConfigMetrics,
    prober: Prober,
    /// The files that the last text names, if it has errors.
    named: RefCell<Vec<PathBuf>>,
    /// The state of the file, for the admin port.
    state: watch::Sender<FileState>,
    /// The settings that the process was started with.
    ///
    /// A change to some settings waits for a restart.
    started_with: Settings,
}

impl Reloader {
    /// Starts the gateway on `workers` and publishes it on `tell`.
    ///
    /// # Errors
    ///
    /// Returns an error if the access log cannot be opened.
    pub(super) fn start(
        file: PathBuf,
        settings: Settings,
        workers: Vec<ArbiterHandle>,
        tell: watch::Sender<Option<Arc<Gateway>>>,
        state: watch::Sender<FileState>,
    ) -> io::Result<Self> {
        let started_with = settings.clone();
        let access = AccessLog::open(&settings.log)?;
        let since = clock::changed(&file).unwrap_or_else(clock::now);
        let gateway = Arc::new(Gateway::start(settings, &workers, access, since));
        let prober = Prober::default();
        prober.follow(gateway.origins());
        tell.send_replace(Some(Arc::clone(&gateway)));
        let metrics = ConfigMetrics::of_this_process();
        metrics.loaded();
        state.send_replace(FileState::loaded(clock::now()));
        Ok(Self {
            file,
            workers,
            in_force: RefCell::new(gateway),
            named: RefCell::default(),
            tell,
            metrics,
            prober,
            state,
            started_with,
        })
    }

    /// The gateway in force.
    pub(super) fn gateway(&self) -> Arc<Gateway> {
        Arc::clone(&self.in_force.borrow())
    }

    /// The files that a reload reads besides the file itself: a change of one is a reason for it.
    ///
    /// If the file has errors, these are those in force and those that it names: one that was
    /// missing may come.
    pub(super) fn other_files(&self) -> Vec<PathBuf> {
        let mut files = self.gateway().settings().plan_files();
        files.extend(self.named.borrow().iter().cloned());
        files.sort();
        files.dedup();
        files
    }

    /// Releases the gateway, also for the receivers of `tell`.
    pub(super) fn end(self) {
        self.tell.send_replace(None);
    }

    /// Puts the text that was read from the file into force.
    ///
    /// If it has an error, the old settings stay.
    pub(super) fn take(&self, read: Result<String, LoadError>) {
        match read.map(|text| config::parse(&text, &self.file, config::has_admin_token())) {
            Ok(Ok(settings)) => {
                self.named.take();
                self.adopt(settings);
            }
            Ok(Err(wrong)) => {
                self.named.replace(wrong.named.clone());
                self.refuse(&wrong, wrong.problems.clone());
            }
            Err(error) => self.refuse(&error, error.problems()),
        }
    }

    fn adopt(&self, settings: Settings) {
        // The log is opened again at each reload, so that a reload follows a rotated log.
        let access = match AccessLog::open(&settings.log) {
            Ok(access) => access,
            Err(error) => {
                return self.refuse(&error, vec![Problem::of_file(error.to_string())]);
            }
        };
        for setting in settings.needing_restart(&self.started_with) {
            tracing::warn!(setting, "a change of this setting needs a restart");
        }
        let new = Arc::new(self.gateway().reload(settings, &self.workers, access));
        self.prober.follow(new.origins());
        self.in_force.replace(Arc::clone(&new));
        self.tell.send_replace(Some(new));
        self.metrics.reloaded();
        self.state.send_modify(|state| state.reloaded(clock::now()));
        tracing::info!(file = %self.file.display(), "the changed file is in force");
    }

    fn refuse(&self, error: &impl Display, problems: Vec<Problem>) {
        self.metrics.failed();
        self.state
            .send_modify(|state| state.refused(problems, clock::now()));
        for line in error.to_string().lines() {
            tracing::error!("{line}");
        }
        tracing::error!(file = %self.file.display(), "the file has errors; the settings in force stay");
    }
}
