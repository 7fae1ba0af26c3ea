//! Format of a state file: a header with checksum and length, then lines.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use config::STATE_MAGIC;
use crc32fast::Hasher;
use limit::Moment;
use tempfile::NamedTempFile;
use thiserror::Error;

use super::record::Record;
use crate::time::clock;

/// Version of the format. Changes whenever an older or newer program would misread the lines.
const VERSION: u32 = 1;
/// Length of a header, in bytes: magic, version (4), length (16), checksum (8), separators.
const HEADER: usize = STATE_MAGIC.len() + 4 + 1 + 16 + 1 + 8 + 1;
/// Maximum length of all lines, in bytes: some ten million keys.
const MAX_BYTES: u64 = 1 << 30;

/// Reason why the state of an earlier process is not used.
#[derive(Debug, Error)]
pub(super) enum Unusable {
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("it is not a state file")]
    NotState,
    #[error("it has version {0}, and this program reads version {VERSION}")]
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

/// Formats the header of a file. Its length has `HEADER` bytes for all values.
fn header(length: u64, checksum: u32) -> String {
    format!("{STATE_MAGIC}{VERSION:04} {length:016x} {checksum:08x}\n")
}

/// A new state file. It replaces the previous one when it is complete.
pub(super) struct Writer {
    /// Final path of the file.
    path: PathBuf,
    /// Temporary file beside `path`, until it is complete.
    file: BufWriter<NamedTempFile>,
    /// Length of the written lines, in bytes.
    length: u64,
    /// Checksum of the written lines.
    checksum: Hasher,
    /// Buffer of one line.
    line: Vec<u8>,
}

impl Writer {
    /// Begins a file beside `path` that only this user may read.
    pub(super) fn begin(path: &Path) -> io::Result<Self> {
        let folder = folder(path);
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        // Remove the file of a process that was killed.
        if let Err(error) = fs::remove_file(folder.join(&name))
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        let mut new = tempfile::Builder::new();
        let new = new.prefix(&name).rand_bytes(0).tempfile_in(folder)?;
        let mut file = BufWriter::with_capacity(64 * 1024, new);
        // Takes the space of the header, which `finish` writes.
        file.write_all(header(0, 0).as_bytes())?;
        Ok(Self {
            path: path.to_owned(),
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

    /// Moves the file to its path, once the disk has it.
    pub(super) fn finish(self) -> io::Result<()> {
        let file = self.file.into_inner();
        let mut file = file.map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(header(self.length, self.checksum.finalize()).as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        // Sync the folder: only then the name is on the disk.
        File::open(folder(&self.path))?.sync_all()
    }
}

/// Returns the folder of a file.
fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// Lines of a state file with a correct checksum.
pub(super) struct Reader {
    /// File, from the next line on.
    file: BufReader<File>,
    /// Buffer of one line.
    line: Vec<u8>,
    /// Number of lines that were read.
    count: usize,
}

impl Reader {
    /// Opens the file at `path` and checks all of it by `deadline`; `None` if there is none.
    pub(super) fn open(path: &Path, deadline: Moment) -> Result<Option<Self>, Unusable> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let metadata = file.metadata()?;
        // A pipe would never end.
        if !metadata.is_file() {
            return Err(Unusable::NotState);
        }
        let mut file = BufReader::with_capacity(64 * 1024, file);
        let mut header = Vec::with_capacity(HEADER);
        (&mut file).take(HEADER as u64).read_to_end(&mut header)?;
        let (length, checksum) = parse_header(&header)?;
        if metadata.len() != HEADER as u64 + length {
            return Err(Unusable::Length);
        }
        let mut hasher = Hasher::new();
        while let bytes = file.fill_buf()?
            && !bytes.is_empty()
        {
            if clock::now() > deadline {
                return Err(Unusable::Slow);
            }
            hasher.update(bytes);
            let count = bytes.len();
            file.consume(count);
        }
        if hasher.finalize() != checksum {
            return Err(Unusable::Checksum);
        }
        file.seek(SeekFrom::Start(HEADER as u64))?;
        Ok(Some(Self {
            file,
            line: Vec::new(),
            count: 0,
        }))
    }

    /// Reads the next line; `None` after the last one.
    pub(super) fn next(&mut self) -> Result<Option<Record>, Unusable> {
        self.line.clear();
        if self.file.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        self.count += 1;
        let record = serde_json::from_slice(&self.line);
        record.map(Some).map_err(|_| Unusable::Line(self.count))
    }
}

/// Parses the length and the checksum of a header.
fn parse_header(bytes: &[u8]) -> Result<(u64, u32), Unusable> {
    let text = std::str::from_utf8(bytes).map_err(|_| Unusable::NotState)?;
    // A file that was cut short within the magic is a state file, too.
    if !text.starts_with(STATE_MAGIC) && !STATE_MAGIC.starts_with(text) {
        return Err(Unusable::NotState);
    }
    let fields = text.get(STATE_MAGIC.len()..);
    let fields = fields.filter(|_| bytes.len() == HEADER);
    let mut fields = fields.ok_or(Unusable::Length)?.split_ascii_whitespace();
    let version = fields.next().and_then(|version| version.parse().ok());
    let version = version.ok_or(Unusable::NotState)?;
    if version != VERSION {
        return Err(Unusable::Version(version));
    }
    let length = fields
        .next()
        .and_then(|hex| u64::from_str_radix(hex, 16).ok());
    let checksum = fields
        .next()
        .and_then(|hex| u32::from_str_radix(hex, 16).ok());
    match length.zip(checksum) {
        // A number has several spellings, but a gateway writes only one.
        Some((length, checksum)) if length <= MAX_BYTES && header(length, checksum) == text => {
            Ok((length, checksum))
        }
        _ => Err(Unusable::Length),
    }
}
