use super::recent::Recent;
use super::{LearnedWork, Work};

/// What is kept over a restart of how long requests of one kind take their origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct SavedWork {
    /// Times while the origin had little to do, in microseconds, the oldest first.
    pub quiet: Vec<u32>,
    /// Other times.
    pub busy: Vec<u32>,
    /// How many of the others there were since the last quiet one.
    pub busy_in_row: u16,
    /// What was learned of them.
    pub learned: Option<LearnedWork>,
}

impl Work {
    /// What is kept of it.
    pub fn save(&self) -> SavedWork {
        SavedWork {
            quiet: self.quiet.in_order(),
            busy: self.busy.in_order(),
            busy_in_row: self.busy_in_row,
            learned: self.learned,
        }
    }

    /// Goes on from what was kept. Of more times than it keeps, the last ones count.
    pub fn restore(saved: &SavedWork) -> Self {
        let recent = |times: &[u32]| {
            let mut recent = Recent::default();
            for micros in times {
                recent.push((*micros).max(1));
            }
            recent
        };
        let learned = saved.learned.map(|it| LearnedWork {
            micros: it.micros.max(1),
            ..it
        });
        Self {
            quiet: recent(&saved.quiet),
            busy: recent(&saved.busy),
            busy_in_row: saved.busy_in_row,
            learned,
        }
    }
}
