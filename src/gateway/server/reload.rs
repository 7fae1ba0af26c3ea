//! Reload: a changed file is checked, and its gateway comes into force on all workers.
//!
//! A *gateway* is the settings of a file with their zones and origins. The first one is started
//! here, too.

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
use crate::observe::metrics::{note_failed_reload, note_load, note_reload};
use crate::origin::Prober;
use crate::time::clock;

/// Logs settings that are valid but probably mistakes.
fn log_warnings(settings: &Settings, file: &Path) {
    for warning in &settings.warnings {
        tracing::warn!("{}", warning.as_warning(file));
    }
}

/// Logs that a plan lost most of its keys. A plan is a list of keys with limits of their own.
fn log_lost_keys(keys: &LostKeys) {
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
    /// Checks the health of servers.
    prober: Prober,
    /// Files named by the last text, if that text has errors.
    named_by_broken: RefCell<Vec<NamedFile>>,
    /// State of the file, for the admin port.
    file_state: watch::Sender<FileState>,
    /// Settings that the process was started with.
    ///
    /// A change to some settings waits for a restart.
    started_with: Settings,
    /// Text that was read last; `None` if the file could not be read.
    text: RefCell<Option<String>>,
    /// Last changes of the settings.
    history: History,
}

impl Reloader {
    /// Starts the gateway on `workers` and publishes it on `gateway_sender`.
    ///
    /// The gateway restores the state of the previous process from `state_file`.
    ///
    /// # Errors
    ///
    /// The access log cannot be opened.
    pub(super) fn start(
        loaded: Loaded,
        workers: Vec<ArbiterHandle>,
        gateway_sender: watch::Sender<Option<Arc<Gateway>>>,
        file_state: watch::Sender<FileState>,
        history: History,
        state_file: Option<&mut StateFile>,
    ) -> io::Result<Self> {
        let (file, settings) = (loaded.file, loaded.settings);
        let started_with = settings.clone();
        log_warnings(&settings, &file);
        let access = AccessLog::open(&settings)?;
        let since = clock::changed(&file).unwrap_or_else(clock::wall);
        let gateway = Arc::new(Gateway::start(settings, &workers, access, since));
        let prober = Prober::default();
        prober.follow(gateway.origins());
        if let Some(state_file) = state_file {
            state_file.restore(&gateway);
            if let Some(rooms) = state_file.rooms() {
                rooms.restore(&gateway);
            }
        }
        gateway_sender.send_replace(Some(Arc::clone(&gateway)));
        note_load();
        file_state.send_replace(FileState::at_start(clock::now()));
        Ok(Self {
            file,
            workers,
            in_force: RefCell::new(gateway),
            named_by_broken: RefCell::default(),
            gateway_sender,
            prober,
            file_state,
            started_with,
            text: RefCell::new(Some(loaded.text)),
            history,
        })
    }

    /// Returns the gateway in force.
    pub(super) fn gateway(&self) -> Arc<Gateway> {
        Arc::clone(&self.in_force.borrow())
    }

    /// Returns the files besides the configuration file whose change causes a reload.
    ///
    /// If the file has errors, these are the files in force and the files that it names: a missing
    /// one may be created.
    pub(super) fn other_files(&self) -> Vec<NamedFile> {
        let mut files = self.named_by_broken.borrow().clone();
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
    pub(super) fn reload(&self, read: Result<String, LoadError>, by: ChangedBy) -> bool {
        let last_text = self.text.replace(read.as_ref().ok().cloned());
        let is_same_text = last_text.is_some() && *self.text.borrow() == last_text;
        let old = self.gateway();
        let parse = |text: String| {
            config::parse_after(old.settings(), &text, &self.file, config::has_admin_token())
        };
        match read.map(parse) {
            Ok(Ok(settings)) => {
                let named_by_broken = self.named_by_broken.take();
                let by = match by {
                    // The text has not changed: it is read because a file that it names has
                    // changed.
                    ChangedBy::File if is_same_text => {
                        let named_before = match &named_by_broken[..] {
                            [] => &old.settings().named,
                            named => named,
                        };
                        changed_kind(named_before, &settings.named)
                    }
                    by => by,
                };
                self.adopt(settings, by)
            }
            Ok(Err(errors)) => {
                self.named_by_broken.replace(errors.named.clone());
                self.refuse(&errors, errors.problems.clone())
            }
            Err(error) => self.refuse(&error, error.problems()),
        }
    }

    /// Puts valid settings into force. Returns whether this succeeded.
    fn adopt(&self, settings: Settings, by: ChangedBy) -> bool {
        // The log is opened again at each reload, so that a reload follows a rotated log.
        let access = match AccessLog::open(&settings) {
            Ok(access) => access,
            Err(error) => {
                return self.refuse(&error, vec![Problem::without_location(error.to_string())]);
            }
        };
        let needs_restart = settings.needing_restart(&self.started_with);
        for setting in &needs_restart {
            tracing::warn!(setting, "a change of this setting needs a restart");
        }
        let old = self.gateway();
        let lost_keys = config::lost_keys(old.settings(), &settings);
        lost_keys.iter().for_each(log_lost_keys);
        let mut changes = config::changes(old.settings(), &settings, &self.started_with);
        let is_change = !changes.is_empty();
        if !is_change {
            changes.push("no setting changed".to_owned());
        }
        self.switch_to(old.reload(settings, &self.workers, access));
        note_reload(needs_restart.len());
        let now = clock::now();
        let change = is_change.then(|| LastChange::of(&changes, lost_keys, now));
        // The history comes first: a client that sees the reload also finds its changes.
        self.history.add(now, by, changes.clone());
        self.file_state.send_modify(|state| {
            state.record_reload(is_change, change.flatten(), needs_restart, now);
        });
        log_warnings(self.gateway().settings(), &self.file);
        tracing::info!(
            file = %self.file.display(),
            by = by.label(),
            what = config::in_one_line(changes),
            "the changed file is in force"
        );
        true
    }

    /// Puts other addresses of names into force.
    pub(super) fn adopt_addresses(&self, found: Addresses) {
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
        note_failed_reload();
        self.file_state
            .send_modify(|state| state.record_refusal(problems, clock::now()));
        for line in error.to_string().lines() {
            tracing::error!("{line}");
        }
        tracing::error!(file = %self.file.display(), "the file has errors; the settings in force stay");
        false
    }
}

/// Returns the kind of the named files that changed; `ChangedBy::File` if none did.
fn changed_kind(before: &[NamedFile], now: &[NamedFile]) -> ChangedBy {
    let mut kinds = FileKind::WORDS.iter().map(|(_, kind)| *kind);
    let changed = kinds.find(|kind| {
        let is_kind = |file: &&NamedFile| file.kind == *kind;
        !before.iter().filter(is_kind).eq(now.iter().filter(is_kind))
    });
    changed.map_or(ChangedBy::File, ChangedBy::Named)
}
