//! The waiting rooms, in a file beside the state file.
//!
//! It is written each second in which something changes, so that a process that is killed forgets
//! nobody's place: numbers are reserved in it before they are drawn.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use limit::{Lottery, LotteryKeys, Moment, SavedRoom};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::StateFile;
use crate::http::gateway::Gateway;
use crate::room::{Identity, SavedOriginRoom};
use crate::time::clock;

/// Numbers that are reserved ahead: more than are drawn between two writes.
const BLOCK: u64 = 1 << 20;
/// Largest file that is read: a million sessions in each of a few rooms.
const MAX_SIZE: u64 = 256 << 20;

/// Highest number that is read: far more than are ever drawn.
const MAX_NUMBER: u64 = u64::MAX >> 1;

/// The file of the waiting rooms of this process.
#[derive(Clone, Debug)]
pub(in crate::server) struct RoomsFile {
    path: PathBuf,
    /// The number of the newest content that was written, and its checksum.
    written: Arc<Mutex<(u64, u32)>>,
}

/// What is in the file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    rooms: Vec<RoomRecord>,
}

/// A room. Times are in milliseconds before the file was written, or from then on.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RoomRecord {
    origin: String,
    life: u64,
    secret: String,
    drawn: u64,
    reserved: u64,
    called: u64,
    emptied: u64,
    is_open: bool,
    #[serde(default)]
    next_call: u64,
    gaps: Vec<(u64, u64)>,
    lotteries: Vec<(u64, u64, LotteryKeys)>,
    sessions: Vec<(u64, u64)>,
    calls: Vec<(u64, u64, u64)>,
}

impl RoomRecord {
    fn of(saved: SavedOriginRoom) -> Self {
        let SavedOriginRoom {
            origin,
            identity,
            room,
        } = saved;
        let lotteries = room.lotteries.into_iter();
        let sessions = room.sessions.into_iter();
        let calls = room.calls.into_iter();
        Self {
            origin,
            life: identity.life,
            secret: BASE64.encode(identity.secret),
            drawn: room.drawn,
            reserved: room.reserved,
            called: room.called,
            emptied: room.emptied,
            is_open: room.is_open,
            next_call: millis(room.next_call),
            gaps: room.gaps,
            lotteries: lotteries.map(|it| (it.first, it.count, it.keys)).collect(),
            sessions: sessions
                .map(|(number, ago)| (number, millis(ago)))
                .collect(),
            calls: calls
                .map(|(place, ago, left)| (place, millis(ago), millis(left)))
                .collect(),
        }
    }

    /// Whether no arithmetic with its numbers overflows.
    fn is_sound(&self) -> bool {
        let last = self.drawn.max(self.reserved);
        let ends = |(first, count, _): &(u64, u64, LotteryKeys)| first.checked_add(*count);
        last <= MAX_NUMBER
            && self
                .lotteries
                .iter()
                .all(|it| ends(it).is_some_and(|end| end <= last))
    }

    /// The room; `None` if its numbers or its secret are none.
    fn into_saved(self) -> Option<SavedOriginRoom> {
        if !self.is_sound() {
            return None;
        }
        let secret = BASE64.decode(self.secret).ok()?.try_into().ok()?;
        let span = Duration::from_millis;
        let lotteries = self.lotteries.into_iter();
        let sessions = self.sessions.into_iter();
        let calls = self.calls.into_iter();
        Some(SavedOriginRoom {
            origin: self.origin,
            identity: Identity {
                life: self.life,
                secret,
            },
            room: SavedRoom {
                drawn: self.drawn,
                reserved: self.reserved,
                called: self.called,
                emptied: self.emptied,
                is_open: self.is_open,
                next_call: span(self.next_call),
                gaps: self.gaps,
                lotteries: lotteries
                    .map(|(first, count, keys)| Lottery { first, count, keys })
                    .collect(),
                sessions: sessions.map(|(number, ago)| (number, span(ago))).collect(),
                calls: calls
                    .map(|(place, ago, left)| (place, span(ago), span(left)))
                    .collect(),
            },
        })
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl StateFile {
    /// The file of the waiting rooms; `None` if another process has it.
    pub(in crate::server) fn rooms(&self) -> Option<RoomsFile> {
        self.lock.as_ref()?;
        Some(self.rooms.clone())
    }
}

impl RoomsFile {
    pub(super) fn beside(state: &Path) -> Self {
        let mut name = state.as_os_str().to_owned();
        name.push(".rooms");
        Self {
            path: name.into(),
            written: Arc::default(),
        }
    }

    /// Lets the rooms of `gateway` go on from what the process before has left. No request may
    /// have come yet.
    pub(in crate::server) fn restore(&self, gateway: &Gateway) {
        if gateway.rooms().next().is_none() && !self.path.exists() {
            return;
        }
        match read(&self.path) {
            Ok(Some(content)) => self.restore_from(content, gateway, clock::now()),
            Ok(None) => {}
            Err(error) => self.tell_unread(&error),
        }
        if let Err(error) = self.write(gateway, BLOCK, 1) {
            self.tell_unwritten(&error);
        }
    }

    fn restore_from(&self, content: Content, gateway: &Gateway, now: Moment) {
        let count = content.rooms.len();
        let saved = content.rooms.into_iter();
        let mut saved: Vec<_> = saved.filter_map(RoomRecord::into_saved).collect();
        if saved.len() < count {
            let error = io::Error::other("a number or a secret is out of range");
            self.tell_unread(&error);
        }
        for room in gateway.rooms() {
            let is_its = |it: &SavedOriginRoom| it.origin == room.origin();
            if let Some(nth) = saved.iter().position(is_its) {
                let saved = saved.swap_remove(nth);
                let sessions = saved.room.sessions.len();
                let waiting = saved.room.drawn.saturating_sub(saved.room.called);
                room.restore(saved, now);
                let origin = room.origin();
                tracing::info!(
                    file = %self.path.display(),
                    origin,
                    sessions,
                    waiting,
                    "the waiting room goes on from the process before"
                );
            }
        }
    }

    /// Writes the rooms of `gateway`, with so many numbers reserved ahead. `nth`: how many contents
    /// there were.
    fn write(&self, gateway: &Gateway, ahead: u64, nth: u64) -> io::Result<()> {
        let now = clock::now();
        let saved = gateway
            .rooms()
            .filter_map(|room| Some((room, room.save(ahead, now)?)));
        let saved: Vec<_> = saved.collect();
        let reserved = saved
            .iter()
            .map(|(room, saved)| (*room, saved.room.reserved));
        let reserved: Vec<_> = reserved.collect();
        let rooms = saved.into_iter().map(|(_, saved)| RoomRecord::of(saved));
        let rooms = rooms.collect();
        self.put(&Content { rooms }, nth)?;
        for (room, reserved) in reserved.into_iter().filter(|_| ahead > 0) {
            room.reserve(reserved);
        }
        Ok(())
    }

    /// Puts a content in place, unless a newer one is there.
    fn put(&self, content: &Content, nth: u64) -> io::Result<()> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let text = serde_json::to_vec(content)?;
        let checksum = crc32fast::hash(&text);
        let (newest, known) = *written;
        if newest >= nth || (newest > 0 && known == checksum) {
            return Ok(());
        }
        // Rooms that left the file are forgotten: nobody waits in them.
        if content.rooms.is_empty() && !self.path.exists() {
            return Ok(());
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        // Only this user may read it: it may have a secret.
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(&text)?;
        file.persist(&self.path)?;
        *written = (nth, checksum);
        Ok(())
    }

    /// Writes the rooms for the last time: the next process begins right behind the last number.
    pub(super) fn finish(&self, gateway: &Gateway) {
        gateway.rooms().for_each(|room| room.hand_over());
        if let Err(error) = self.write(gateway, 0, u64::MAX) {
            self.tell_unwritten(&error);
        }
    }

    /// Writes the rooms on a thread that may wait for the disk.
    pub(in crate::server) async fn save(&self, gateway: &Arc<Gateway>, nth: u64) {
        let (file, gateway) = (self.clone(), Arc::clone(gateway));
        let written = tokio::task::spawn_blocking(move || file.write(&gateway, BLOCK, nth)).await;
        if let Ok(Err(error)) = written {
            self.tell_unwritten(&error);
        }
    }

    fn tell_unread(&self, error: &io::Error) {
        tracing::error!(
            file = %self.path.display(),
            %error,
            "the waiting rooms of the process before cannot be read: all visitors begin anew"
        );
    }

    fn tell_unwritten(&self, error: &io::Error) {
        tracing::error!(
            file = %self.path.display(),
            %error,
            "the waiting rooms cannot be written: after a kill visitors would begin anew"
        );
    }
}

fn read(path: &Path) -> io::Result<Option<Content>> {
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > MAX_SIZE {
        return Err(io::Error::other("it is no file of waiting rooms"));
    }
    Ok(Some(serde_json::from_reader(io::BufReader::new(file))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = RoomsFile::beside(&folder.path().join("drip.state"));
        assert!(read(&file.path).unwrap().is_none());
        let saved = SavedOriginRoom {
            origin: "shop".to_owned(),
            identity: Identity {
                life: u64::MAX,
                secret: [9; 32],
            },
            room: SavedRoom {
                drawn: 100,
                reserved: 200,
                called: 50,
                emptied: 3,
                is_open: true,
                next_call: Duration::from_secs(5),
                gaps: vec![(7, 9)],
                lotteries: vec![Lottery {
                    first: 1,
                    count: 5,
                    keys: [u64::MAX; 6],
                }],
                sessions: vec![(4, Duration::from_millis(1500))],
                calls: vec![(49, Duration::from_secs(1), Duration::from_secs(9))],
            },
        };
        let content = |saved: &SavedOriginRoom| Content {
            rooms: vec![RoomRecord::of(saved.clone())],
        };
        file.put(&content(&saved), 2).unwrap();
        let mut older = saved.clone();
        older.room.drawn = 1;
        file.put(&content(&older), 1).unwrap();
        let read = read(&file.path).unwrap().unwrap();
        let rooms: Vec<_> = read.rooms.into_iter().map(RoomRecord::into_saved).collect();
        assert_eq!(rooms, [Some(saved)]);
    }

    #[test]
    fn what_is_no_file_of_rooms_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rooms");
        fs::write(&path, "{\"rooms\": [{}]}").unwrap();
        assert!(read(&path).is_err());
        assert!(read(folder.path()).is_err());
    }
}
