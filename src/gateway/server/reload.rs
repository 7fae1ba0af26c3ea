//! Reload: a changed file is checked, and its gateway comes into force on all workers.

use std::cell::RefCell;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use actix_rt::ArbiterHandle;
use config::{
    self, ChangedBy, FileKind, FileState, History, LastChange, LoadError, LostKeys, NamedFile,
    Problem, Settings, Words,
};
use tokio::sync::watch;

use super::load::Loaded;
use super::state::StateFile;
use crate::admin::MaintenanceChange;
use crate::http::gateway::{Addresses, Gateway};
use crate::observe::access::AccessLog;
use crate::observe::metrics::ConfigMetrics;
use crate::origin::Prober;
use crate::time::clock;

/// Logs settings that are legal and probably a mistake.
fn warn(settings: &Settings, file: &Path) {
    for warning in &settings.warnings {
        tracing::warn!("{}", warning.as_warning(file));
    }
}

/// Logs that a plan lost most of its keys.
fn warn_of_lost_keys(keys: &LostKeys) {
    let (zone, plan, file) = (&*keys.zone, &*keys.plan, keys.file.as_deref());
    let LostKeys { lost, had, .. } = keys;
    tracing::warn!(
        zone,
        plan,
        file,
        "the plan has lost {lost} of {had} keys: they have the limit of the zone now"
    );
}

/// Puts a changed file into force.
pub(super) struct Reloader {
    /// Path of the configuration file.
    file: PathBuf,
    workers: Vec<ArbiterHandle>,
    /// Gateway in force.
    in_force: RefCell<Arc<Gateway>>,
    /// Publishes the gateway in force.
    gateway_sender: watch::Sender<Option<Arc<Gateway>>>,
    metrics: ConfigMetrics,
    /// Checks the health of servers.
    prober: Prober,
    /// Files named by the last text, if that text has errors.
    named: RefCell<Vec<NamedFile>>,
    /// State of the file, for the admin port.
    state: watch::Sender<FileState>,
    /// Settings that the process was started with.
    ///
    /// A change to some settings waits for a restart.
    started_with: Settings,
    /// Text that was read last; `None` after an error.
    text: RefCell<Option<String>>,
    /// Last changes of the settings.
    history: History,
}

impl Reloader {
    /// Starts the gateway on `workers` and publishes it on `gateway_sender`.
    ///
    /// The gateway restores the saved state of the previous process, `left`.
    ///
    /// # Errors
    ///
    /// The access log cannot be opened.
    pub(super) fn start(
        loaded: Loaded,
        workers: Vec<ArbiterHandle>,
        gateway_sender: watch::Sender<Option<Arc<Gateway>>>,
        state: watch::Sender<FileState>,
        history: History,
        left: Option<&mut StateFile>,
    ) -> io::Result<Self> {
        let Loaded {
            file,
            text,
            settings,
        } = loaded;
        let started_with = settings.clone();
        warn(&settings, &file);
        let access = AccessLog::open(&settings)?;
        let since = clock::changed(&file).unwrap_or_else(clock::wall);
        let gateway = Arc::new(Gateway::start(settings, &workers, access, since));
        let prober = Prober::default();
        prober.follow(gateway.origins());
        if let Some(left) = left {
            left.restore(&gateway);
            if let Some(rooms) = left.rooms() {
                rooms.restore(&gateway);
            }
        }
        gateway_sender.send_replace(Some(Arc::clone(&gateway)));
        let metrics = ConfigMetrics::of_this_process();
        metrics.loaded();
        state.send_replace(FileState::loaded(clock::now()));
        Ok(Self {
            file,
            workers,
            in_force: RefCell::new(gateway),
            named: RefCell::default(),
            gateway_sender,
            metrics,
            prober,
            state,
            started_with,
            text: RefCell::new(Some(text)),
            history,
        })
    }

    /// The gateway in force.
    pub(super) fn gateway(&self) -> Arc<Gateway> {
        Arc::clone(&self.in_force.borrow())
    }

    /// Files that a reload reads besides the file itself: a change of one causes a reload.
    ///
    /// If the file has errors, these are the files in force and the files that it names: a missing
    /// one may be created.
    pub(super) fn other_files(&self) -> Vec<NamedFile> {
        let mut files = self.named.borrow().clone();
        files.extend(self.gateway().settings().named.iter().cloned());
        files
    }

    /// Releases the gateway, also for the receivers of `gateway_sender`.
    pub(super) fn end(self) {
        self.gateway_sender.send_replace(None);
    }

    /// Puts the text that was read from the file into force. `by`: reason for reading it.
    ///
    /// If the text has an error, the old settings stay. Returns whether the text is in force.
    pub(super) fn take(&self, read: Result<String, LoadError>, by: ChangedBy) -> bool {
        let known = self.text.replace(read.as_ref().ok().cloned());
        // The same text is read again because of another file that it names.
        let is_same = known.is_some() && *self.text.borrow() == known;
        let old = self.gateway();
        let parse = |text: String| {
            config::parse_after(old.settings(), &text, &self.file, config::has_admin_token())
        };
        match read.map(parse) {
            Ok(Ok(settings)) => {
                let broken = self.named.take();
                let by = match by {
                    ChangedBy::File if is_same => self.other_file(&broken, &settings),
                    by => by,
                };
                self.adopt(settings, by)
            }
            Ok(Err(wrong)) => {
                self.named.replace(wrong.named.clone());
                self.refuse(&wrong, wrong.problems.clone())
            }
            Err(error) => self.refuse(&error, error.problems()),
        }
    }

    /// Returns which other file changed, since `broken` or since the settings in force.
    ///
    /// `broken`: the files that the text before named, if it had errors.
    fn other_file(&self, broken: &[NamedFile], new: &Settings) -> ChangedBy {
        /// Selects the named files of one kind.
        fn of(named: &[NamedFile], kind: FileKind) -> impl Iterator<Item = &NamedFile> {
            named.iter().filter(move |file| file.kind == kind)
        }
        let gateway = self.gateway();
        let before = match broken {
            [] => &gateway.settings().named,
            _ => broken,
        };
        let mut kinds = FileKind::WORDS.iter().map(|(_, kind)| *kind);
        let changed = kinds.find(|kind| !of(before, *kind).eq(of(&new.named, *kind)));
        changed.map_or(ChangedBy::File, ChangedBy::Named)
    }

    /// Puts valid settings into force. Returns whether this succeeded.
    fn adopt(&self, settings: Settings, by: ChangedBy) -> bool {
        // The log is opened again at each reload, so that a reload follows a rotated log.
        let access = match AccessLog::open(&settings) {
            Ok(access) => access,
            Err(error) => return self.refuse(&error, vec![Problem::of_file(error.to_string())]),
        };
        let needs_restart = settings.needing_restart(&self.started_with);
        for setting in &needs_restart {
            tracing::warn!(setting, "a change of this setting needs a restart");
        }
        let old = self.gateway();
        let lost_keys = config::lost_keys(old.settings(), &settings);
        lost_keys.iter().for_each(warn_of_lost_keys);
        let mut what = config::changes(old.settings(), &settings, &self.started_with);
        let is_change = !what.is_empty();
        if !is_change {
            what.push("no setting changed".to_owned());
        }
        self.switch_to(old.reload(settings, &self.workers, access));
        self.metrics.reloaded(needs_restart.len());
        let now = clock::now();
        let change = is_change.then(|| LastChange::of(&what, lost_keys, now));
        // The history comes first: whoever sees the reload also finds its changes.
        self.history.add(now, by, what.clone());
        self.state
            .send_modify(|state| state.reloaded(is_change, change.flatten(), needs_restart, now));
        warn(self.gateway().settings(), &self.file);
        tracing::info!(
            file = %self.file.display(),
            by = by.label(),
            what = config::in_one_line(what),
            "the changed file is in force"
        );
        true
    }

    /// Puts other addresses of names into force.
    pub(super) fn take_addresses(&self, found: Addresses) {
        let old = self.gateway();
        let known = old.addresses();
        for (name, addresses) in &found {
            if known.get(name) != Some(addresses) {
                let addresses = addresses.iter().map(ToString::to_string);
                let addresses = addresses.collect::<Vec<_>>().join(", ");
                tracing::info!(name, addresses, "the addresses of a name changed");
            }
        }
        self.switch_to(old.with_addresses(found, &self.workers));
    }

    /// Puts a change of the maintenance into force.
    pub(super) fn maintain(&self, change: MaintenanceChange) {
        let old = self.gateway();
        let mut maintenances = old.maintenances().clone();
        change(&mut maintenances);
        if maintenances != *old.maintenances() {
            self.switch_to(old.with_maintenances(maintenances, &self.workers));
        }
    }

    /// Publishes a gateway and replaces the one in force.
    fn switch_to(&self, gateway: Gateway) {
        let new = Arc::new(gateway);
        self.prober.follow(new.origins());
        self.in_force.replace(Arc::clone(&new));
        self.gateway_sender.send_replace(Some(new));
    }

    /// Logs and records a file with errors. Returns `false`.
    fn refuse(&self, error: &impl Display, problems: Vec<Problem>) -> bool {
        self.metrics.failed();
        self.state
            .send_modify(|state| state.refused(problems, clock::now()));
        for line in error.to_string().lines() {
            tracing::error!("{line}");
        }
        tracing::error!(file = %self.file.display(), "the file has errors; the settings in force stay");
        false
    }
}
