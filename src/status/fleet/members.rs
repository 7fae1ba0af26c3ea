use super::pace::Pace;
use super::picture;
use super::reading::Reading;
use crate::config::AdminAddress;
use crate::limit::Moment;
use crate::status::views::{Fleet, Plain};

/// The gateways of one picture, and what was last read of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members(Vec<Member>);

/// A gateway.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// `None`: it is the one that makes the picture.
    pub(super) address: Option<AdminAddress>,
    pub(super) last: Last,
    /// Its own name, as it was last told.
    pub(super) name: Plain,
    pub(super) pace: Pace,
}

/// What was last read of a gateway.
#[derive(Clone, Debug)]
pub(super) enum Last {
    /// It was not read yet.
    Nothing,
    Reading(Box<Reading>),
    /// It does not answer.
    Silent {
        since: Moment,
        why: Plain,
    },
}

impl Members {
    /// Gateways that were not read yet; `None`: the one that makes the picture.
    pub(crate) fn new(addresses: impl IntoIterator<Item = Option<AdminAddress>>) -> Self {
        let members = addresses.into_iter().map(|address| Member {
            address,
            last: Last::Nothing,
            name: Plain::default(),
            pace: Pace::default(),
        });
        Self(members.collect())
    }

    /// Notes what was read of a gateway, or why it could not be read.
    pub(crate) fn hear(&mut self, index: usize, read: Result<Reading, String>, now: Moment) {
        let Some(member) = self.0.get_mut(index) else {
            return;
        };
        member.last = match read {
            Ok(reading) => {
                if let Some(sample) = &reading.sample {
                    member.pace.note(sample, &reading.origins);
                }
                member.name = reading.name.clone();
                Last::Reading(Box::new(reading))
            }
            Err(why) => {
                member.pace.clear();
                let since = match member.last {
                    Last::Silent { since, .. } => since,
                    Last::Nothing | Last::Reading(_) => now,
                };
                let why = Plain::new(&why);
                Last::Silent { since, why }
            }
        };
    }

    /// Whether each was read, or found silent, at least once.
    pub(crate) fn are_known(&self) -> bool {
        let mut members = self.0.iter();
        members.all(|member| !matches!(member.last, Last::Nothing))
    }

    /// Why no gateway was read; `None` if any was.
    pub(crate) fn silence(&self) -> Option<String> {
        let mut reasons = Vec::new();
        for member in &self.0 {
            let address = member.address.as_ref().map(ToString::to_string);
            match &member.last {
                Last::Reading(_) => return None,
                Last::Nothing => {}
                Last::Silent { why, .. } => {
                    reasons.push(format!("{}: {why}", address.unwrap_or_default()));
                }
            }
        }
        Some(reasons.join("; "))
    }

    /// One picture of all.
    pub(crate) fn picture(&self) -> Fleet {
        picture::of(&self.0)
    }
}

impl Member {
    /// What was read of it; `None` if it does not answer.
    pub(super) fn reading(&self) -> Option<&Reading> {
        match &self.last {
            Last::Reading(reading) => Some(reading),
            Last::Nothing | Last::Silent { .. } => None,
        }
    }
}
