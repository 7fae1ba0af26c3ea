//! File of the waiting rooms, beside the state file.
//!
//! A visitor draws a number in a room, and is called when all lower numbers were. The file is
//! written each second in which a room changes, so that a killed process forgets no visitor's
//! position. Numbers are reserved in the file before they are drawn, so that none is drawn twice.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::StateFile;
use crate::http::gateway::Gateway;
use crate::room::SavedOriginRoom;
use crate::time::clock;

/// Count of reserved numbers: more than are drawn between two writes.
const RESERVED: u64 = 1 << 20;
/// Maximum size of a file that is read, in bytes: a million sessions in each of a few rooms.
const MAX_SIZE: u64 = 256 << 20;

/// File of the waiting rooms of this process.
#[derive(Clone, Debug)]
pub(in crate::server) struct RoomsFile {
    /// Path of the file.
    path: PathBuf,
    /// Newest written content. Clones share it.
    written: Arc<Mutex<Written>>,
}

/// Content that was written; the default: none yet.
#[derive(Debug, Default)]
struct Written {
    /// Number of the content, from 1. A later content has a higher number.
    number: u64,
    checksum: u32,
}

/// Content of the file.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    rooms: Vec<SavedOriginRoom>,
}

impl StateFile {
    /// Returns the file of the waiting rooms; `None` if another process has it.
    pub(in crate::server) fn rooms(&self) -> Option<RoomsFile> {
        self.lock.as_ref()?;
        Some(self.rooms.clone())
    }
}

impl RoomsFile {
    /// Returns the file of the waiting rooms beside this state file.
    pub(super) fn beside(state: &Path) -> Self {
        let mut name = state.as_os_str().to_owned();
        name.push(".rooms");
        Self {
            path: name.into(),
            written: Arc::default(),
        }
    }

    /// Restores the rooms of the previous process. Call it before the first request of `gateway`.
    pub(in crate::server) fn restore(&self, gateway: &Gateway) {
        if gateway.rooms().next().is_none() && !self.path.exists() {
            return;
        }
        let content = read(&self.path).inspect_err(|error| self.log_unreadable(error));
        let now = clock::now();
        for saved in content
            .into_iter()
            .flatten()
            .flat_map(|content| content.rooms)
        {
            let Some(room) = gateway.rooms().find(|room| room.origin == saved.origin) else {
                continue;
            };
            if !saved.room.is_sound() {
                self.log_unreadable(&io::Error::other("a number is out of range"));
                continue;
            }
            let sessions = saved.room.sessions.len();
            let waiting = saved.room.drawn.saturating_sub(saved.room.called);
            room.restore(saved, now);
            let (file, origin) = (self.path.display(), &room.origin);
            tracing::info!(
                %file,
                origin,
                sessions,
                waiting,
                "the waiting room continues from the state of the previous process"
            );
        }
        self.write(gateway, RESERVED, 1);
    }

    /// Writes the rooms of `gateway`, and logs if that fails.
    ///
    /// `reserved`: count of numbers to reserve. `number`: number of this content.
    fn write(&self, gateway: &Gateway, reserved: u64, number: u64) {
        if let Err(error) = self.try_write(gateway, reserved, number) {
            tracing::error!(
                file = %self.path.display(),
                %error,
                "the waiting rooms cannot be written: if this process is killed, all visitors lose their positions"
            );
        }
    }

    /// Writes the rooms of `gateway`. Then the reserved numbers may be drawn.
    fn try_write(&self, gateway: &Gateway, reserved: u64, number: u64) -> io::Result<()> {
        let now = clock::now();
        let rooms = gateway.rooms();
        let (rooms, saved): (Vec<_>, Vec<_>) = rooms
            .filter_map(|room| Some((room, room.save(reserved, now)?)))
            .unzip();
        let content = Content { rooms: saved };
        self.write_content(&content, number)?;
        if reserved > 0 {
            for (room, saved) in rooms.iter().zip(&content.rooms) {
                room.reserve(saved.room.reserved);
            }
        }
        Ok(())
    }

    /// Writes a content, unless a newer one is written.
    fn write_content(&self, content: &Content, number: u64) -> io::Result<()> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let text = serde_json::to_vec(content)?;
        let checksum = crc32fast::hash(&text);
        let is_same = written.number > 0 && written.checksum == checksum;
        if written.number >= number || is_same {
            return Ok(());
        }
        // Rooms that were removed from the configuration are forgotten: no visitor waits in them.
        if content.rooms.is_empty() && !self.path.exists() {
            return Ok(());
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        // Only this user may read it: it may contain a secret.
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(&text)?;
        file.persist(&self.path)?;
        *written = Written { number, checksum };
        Ok(())
    }

    /// Writes the rooms for the last time, without reserved numbers.
    ///
    /// The next process continues right after the last number.
    pub(super) fn finish(&self, gateway: &Gateway) {
        gateway.rooms().for_each(|room| room.hand_over());
        // The highest number: no other content may replace the last one.
        self.write(gateway, 0, u64::MAX);
    }

    /// Writes the rooms on a thread that may wait for the disk.
    pub(in crate::server) async fn save(&self, gateway: &Arc<Gateway>, number: u64) {
        let (file, gateway) = (self.clone(), Arc::clone(gateway));
        let write = move || file.write(&gateway, RESERVED, number);
        let _stopped = tokio::task::spawn_blocking(write).await;
    }

    /// Logs that the file could not be read.
    fn log_unreadable(&self, error: &io::Error) {
        tracing::error!(
            file = %self.path.display(),
            %error,
            "the waiting rooms of the previous process cannot be read: all visitors lose their positions"
        );
    }
}

/// Reads the file; `None` if there is none.
fn read(path: &Path) -> io::Result<Option<Content>> {
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > MAX_SIZE {
        return Err(io::Error::other("it is not a file of waiting rooms"));
    }
    Ok(Some(serde_json::from_reader(io::BufReader::new(file))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with one room and all fields. The next version of the gateway must read it as well.
    const FILE: &str = r#"{"rooms":[{"origin":"shop","life":18446744073709551615,"secret":"CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk=","drawn":100,"reserved":200,"called":50,"emptied":3,"is_open":true,"next_call":5000,"gaps":[[7,9]],"lotteries":[[1,5,[1,2,3,4,5,6]]],"sessions":[[4,1500]],"calls":[[49,1000,9000]]}]}"#;

    #[test]
    fn a_room_is_read_as_it_was_written_and_an_older_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = RoomsFile::beside(&folder.path().join("drip.state"));
        assert!(read(&file.path).unwrap().is_none());
        let content: Content = serde_json::from_str(FILE).unwrap();
        file.write_content(&content, 2).unwrap();
        assert_eq!(fs::read_to_string(&file.path).unwrap(), FILE);
        let older = Content { rooms: Vec::new() };
        file.write_content(&older, 1).unwrap();
        assert!(read(&file.path).unwrap() == Some(content));
    }

    #[test]
    fn an_invalid_file_of_rooms_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rooms");
        fs::write(&path, "{\"rooms\": [{}]}").unwrap();
        assert!(read(&path).is_err());
        assert!(read(folder.path()).is_err());
    }
}
