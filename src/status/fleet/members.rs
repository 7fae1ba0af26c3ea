use super::member::{Last, Member};
use super::pace::Pace;
use super::picture;
use super::reading::{Reading, Unread};
use crate::config::AdminAddress;
use crate::limit::Moment;
use crate::status::views::{Fleet, Plain};

/// The gateways of one picture, and what was last read of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members(Vec<Member>);

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
    pub(crate) fn hear(&mut self, index: usize, read: Result<Reading, Unread>, now: Moment) {
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
            Err(Unread { kind, why }) => {
                member.pace.clear();
                let since = match member.last {
                    Last::Unread { since, .. } => since,
                    Last::Nothing | Last::Reading(_) => now,
                };
                let why = Plain::new(&why);
                Last::Unread { since, kind, why }
            }
        };
    }

    /// Whether each was read, or could not be read, at least once.
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
                Last::Unread { why, .. } => {
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
