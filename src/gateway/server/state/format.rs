//! The form of a state file: a header with a checksum, then lines of a known length together.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use config::STATE_MAGIC;
use crc32fast::Hasher;
use limit::Moment;
use thiserror::Error;

use super::record::Record;
use crate::time::clock;

/// Changes whenever an older or newer program would misread the lines.
const VERSION: u32 = 1;
/// Bytes of a header: magic, version, length and checksum.
const HEADER: usize = STATE_MAGIC.len() + 4 + 1 + 16 + 1 + 8 + 1;
/// The most bytes of lines that are written or read: some ten million keys.
const MAX_BYTES: u64 = 1 << 30;

/// Why the state of an earlier process is not used.
#[derive(Debug, Error)]
pub(super) enum Unusable {
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("it is not a state file")]
    Other,
    #[error("it is of version {0}, and this program reads version {VERSION}")]
    Version(u32),
    #[error("it is cut short, or longer than it was written")]
    Length,
    #[error("its checksum is wrong")]
    Checksum,
    #[error("line {0} is not understood")]
    Line(usize),
    #[error("it was written in the future: the clock was set back")]
    Future,
    #[error("reading it takes too long")]
    Slow,
}

fn header(length: u64, checksum: u32) -> String {
    format!("{STATE_MAGIC}{VERSION:04} {length:016x} {checksum:08x}\n")
}

/// A new state file. It takes the place of the one before when it is complete.
#[derive(Debug)]
pub(super) struct Writer {
    /// Where it goes.
    path: PathBuf,
    /// Where it is until it is complete.
    beside: Beside,
    file: BufWriter<File>,
    length: u64,
    checksum: Hasher,
    line: Vec<u8>,
}

impl Writer {
    /// Begins a file beside `path`, which only this user may read.
    pub(super) fn begin(path: &Path) -> io::Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(".new");
        let name = PathBuf::from(name);
        // One that a killed process left may have other permissions.
        match fs::remove_file(&name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut new = OpenOptions::new();
        let file = new.write(true).create_new(true).mode(0o600).open(&name)?;
        let beside = Beside(Some(name));
        let mut file = BufWriter::with_capacity(64 * 1024, file);
        file.write_all(header(0, 0).as_bytes())?;
        Ok(Self {
            path: path.to_owned(),
            beside,
            file,
            length: 0,
            checksum: Hasher::new(),
            line: Vec::new(),
        })
    }

    /// Writes a line.
    pub(super) fn write(&mut self, record: &Record) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, record)?;
        self.line.push(b'\n');
        self.length += self.line.len() as u64;
        if self.length > MAX_BYTES {
            return Err(io::Error::other(format!(
                "it would have over {MAX_BYTES} bytes"
            )));
        }
        self.checksum.update(&self.line);
        self.file.write_all(&self.line)
    }

    /// Puts the file in its place, once the disk has it.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let mut file = self
            .file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(header(self.length, self.checksum.finalize()).as_bytes())?;
        file.sync_all()?;
        if let Some(beside) = &self.beside.0 {
            fs::rename(beside, &self.path)?;
        }
        self.beside.0 = None;
        // The name is on the disk once its folder is.
        folder(&self.path).and_then(File::open)?.sync_all()
    }
}

/// A file that is removed unless it gets its place.
#[derive(Debug)]
struct Beside(Option<PathBuf>);

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(name) = &self.0 {
            // What is left is overwritten the next time.
            let _left = fs::remove_file(name);
        }
    }
}

fn folder(path: &Path) -> io::Result<&Path> {
    path.parent()
        .ok_or_else(|| io::Error::from(io::ErrorKind::NotADirectory))
}

/// The lines of a state file whose checksum is right.
#[derive(Debug)]
pub(super) struct Reader {
    file: BufReader<File>,
    /// Bytes of lines that are still to come.
    left: u64,
    line: Vec<u8>,
    count: usize,
}

impl Reader {
    /// Opens the file at `path` and checks all of it by `deadline`; `None` if there is none.
    pub(super) fn open(path: &Path, deadline: Moment) -> Result<Option<Self>, Unusable> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        // A pipe would never end.
        if !file.metadata()?.is_file() {
            return Err(Unusable::Other);
        }
        let mut file = BufReader::with_capacity(64 * 1024, file);
        let mut header = Vec::with_capacity(HEADER);
        (&mut file).take(HEADER as u64).read_to_end(&mut header)?;
        let (length, checksum) = parse_header(&header)?;
        let mut left = length;
        let mut hasher = Hasher::new();
        loop {
            let bytes = file.fill_buf()?;
            if bytes.is_empty() {
                break;
            }
            if clock::now() > deadline {
                return Err(Unusable::Slow);
            }
            let count = bytes.len();
            left = left.checked_sub(count as u64).ok_or(Unusable::Length)?;
            hasher.update(bytes);
            file.consume(count);
        }
        if left > 0 {
            return Err(Unusable::Length);
        }
        if hasher.finalize() != checksum {
            return Err(Unusable::Checksum);
        }
        file.seek(SeekFrom::Start(HEADER as u64))?;
        Ok(Some(Self {
            file,
            left: length,
            line: Vec::new(),
            count: 0,
        }))
    }

    /// The next line; `None` after the last one.
    pub(super) fn next(&mut self) -> Result<Option<Record>, Unusable> {
        if self.left == 0 {
            return Ok(None);
        }
        self.line.clear();
        let mut line = (&mut self.file).take(self.left);
        let count = line.read_until(b'\n', &mut self.line)?;
        if count == 0 {
            return Err(Unusable::Length);
        }
        self.left -= count as u64;
        self.count += 1;
        let record = serde_json::from_slice(&self.line);
        record.map(Some).map_err(|_| Unusable::Line(self.count))
    }
}

/// The length and the checksum that a header tells.
fn parse_header(header: &[u8]) -> Result<(u64, u32), Unusable> {
    let text = std::str::from_utf8(header).map_err(|_| Unusable::Other)?;
    let Some(text) = text.strip_prefix(STATE_MAGIC) else {
        let is_begin = STATE_MAGIC.starts_with(text);
        return Err(if is_begin {
            Unusable::Length
        } else {
            Unusable::Other
        });
    };
    let (version, rest) = text.split_once(' ').ok_or(Unusable::Other)?;
    let version: u32 = version.parse().map_err(|_| Unusable::Other)?;
    if version != VERSION {
        return Err(Unusable::Version(version));
    }
    let fields = rest
        .strip_suffix('\n')
        .and_then(|rest| rest.split_once(' '));
    let numbers = fields.and_then(|(length, checksum)| {
        let length = u64::from_str_radix(length, 16).ok()?;
        Some((length, u32::from_str_radix(checksum, 16).ok()?))
    });
    let (length, checksum) = numbers.ok_or(Unusable::Length)?;
    // Numbers may be written in several ways, but a gateway writes them in one.
    if length > MAX_BYTES || self::header(length, checksum) != format!("{STATE_MAGIC}{text}") {
        return Err(Unusable::Length);
    }
    Ok((length, checksum))
}
