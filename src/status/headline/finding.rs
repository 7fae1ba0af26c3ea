use crate::status::views::{Headline, Plain, Suspicion, Topic};

/// What a headline is about, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::status) enum Cause {
    ConnectionsFull,
    NoDescriptors,
    NoLocalPorts,
    Certificate,
    StoreOut,
    StoreRefuses,
    GateAlone,
    RoomStuck,
    Holding,
    OriginFailing,
    OriginHangs,
    OriginErrors,
    ServerOut,
    Maintenance,
    Paused,
    RoomPaused,
    BackingOff,
    KeyFlood,
    Leaving,
    RoomTurnsLost,
    UntrustedProxy,
    Rejecting,
    RoomLongWait,
    RoomPolls,
    NoKey,
    LogLost,
    FileError,
    FileDoubtful,
    Waiting,
    Overridden,
    Fine,
    Idle,
    Looking,
}

impl Cause {
    pub(in crate::status) fn label(self) -> &'static str {
        match self {
            Self::ConnectionsFull => "connections_full",
            Self::NoDescriptors => "no_descriptors",
            Self::NoLocalPorts => "no_local_ports",
            Self::Certificate => "certificate",
            Self::StoreOut => "store_out",
            Self::StoreRefuses => "store_refuses",
            Self::GateAlone => "gate_alone",
            Self::RoomStuck => "room_stuck",
            Self::Holding => "holding",
            Self::OriginFailing => "origin_failing",
            Self::OriginHangs => "origin_hangs",
            Self::OriginErrors => "origin_errors",
            Self::ServerOut => "server_out",
            Self::Maintenance => "maintenance",
            Self::Paused => "paused",
            Self::RoomPaused => "room_paused",
            Self::BackingOff => "backing_off",
            Self::KeyFlood => "key_flood",
            Self::Leaving => "leaving",
            Self::RoomTurnsLost => "room_turns_lost",
            Self::UntrustedProxy => "untrusted_proxy",
            Self::Rejecting => "rejecting",
            Self::RoomLongWait => "room_long_wait",
            Self::RoomPolls => "room_polls",
            Self::NoKey => "no_key",
            Self::LogLost => "log_lost",
            Self::FileError => "file_error",
            Self::FileDoubtful => "file_doubtful",
            Self::Waiting => "waiting",
            Self::Overridden => "overridden",
            Self::Fine => "fine",
            Self::Idle => "idle",
            Self::Looking => "looking",
        }
    }
}

/// How much a headline matters, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::status) enum Severity {
    None,
    Fine,
    Warn,
    Bad,
}

impl Severity {
    pub(in crate::status) fn label(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Fine => "fine",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }

    /// Bad or worth a warning.
    pub(in crate::status) fn bad_if(bad: bool) -> Self {
        if bad { Self::Bad } else { Self::Warn }
    }
}

/// What one rule has found.
pub(in crate::status) struct Finding {
    pub(in crate::status) cause: Cause,
    pub(in crate::status) severity: Severity,
    /// Of findings with the same cause and severity, the heaviest comes first.
    pub(in crate::status) weight: f64,
    pub(in crate::status) about: Option<Plain>,
    pub(in crate::status) title: String,
    pub(in crate::status) evidence: String,
    pub(in crate::status) remedy: String,
    /// What a change of the file just before it means.
    pub(in crate::status) suspicion: Suspicion,
}

impl Finding {
    /// A finding without words yet.
    pub(in crate::status) fn new(cause: Cause, severity: Severity) -> Self {
        Self {
            cause,
            severity,
            weight: 0.0,
            about: None,
            title: String::new(),
            evidence: String::new(),
            remedy: String::new(),
            suspicion: Suspicion::Named,
        }
    }

    /// A finding about a zone or an origin, without words yet.
    pub(in crate::status) fn about(name: &Plain, cause: Cause, severity: Severity) -> Self {
        Self {
            about: Some(name.clone()),
            ..Self::new(cause, severity)
        }
    }

    /// What it is about, if it is worth a warning.
    pub(in crate::status) fn topic(&self) -> Option<Topic> {
        (self.severity >= Severity::Warn).then(|| Topic {
            cause: self.cause.label().into(),
            about: self.about.clone(),
        })
    }

    /// Its place in the order. A certificate that is only worth a warning can wait: it comes just before the file.
    fn rank(&self) -> (Cause, bool) {
        match (self.cause, self.severity) {
            (Cause::Certificate, Severity::Warn) => (Cause::FileError, false),
            (cause, _) => (cause, true),
        }
    }

    pub(in crate::status) fn into_headline(self, also: Vec<Plain>) -> Headline {
        Headline {
            cause: self.cause.label().into(),
            severity: self.severity.label().into(),
            about: self.about,
            title: Plain::new(&self.title),
            evidence: Plain::new(&self.evidence),
            remedy: Plain::new(&self.remedy),
            advised_rate: None,
            also,
            since: None,
            ended: None,
            weight: f64::from(self.severity as u8) * 1e12 + self.weight,
            found: Vec::new(),
            count: 0,
            suspicion: self.suspicion,
            is_of_zone: false,
        }
    }
}

/// Puts findings in their order: the most urgent first.
pub(in crate::status) fn in_order(found: &mut [Finding]) {
    found.sort_by(|a, b| {
        // What is no warning comes last, whatever it is about.
        let is_fine = |it: &Finding| it.severity < Severity::Warn;
        let urgent = is_fine(a).cmp(&is_fine(b)).then(a.rank().cmp(&b.rank()));
        let urgent = urgent.then(b.severity.cmp(&a.severity));
        urgent.then(b.weight.total_cmp(&a.weight))
    });
}
