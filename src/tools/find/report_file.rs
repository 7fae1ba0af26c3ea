use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;

/// A file for a report. What it has from an earlier one stays until the new one is complete.
#[derive(Debug)]
pub(super) struct ReportFile {
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// Written beside the file, and renamed to it.
    Beside {
        file: File,
        beside: PathBuf,
        path: PathBuf,
    },
    /// No regular file, such as `/dev/stdout`.
    Direct(File),
}

impl ReportFile {
    /// Checks that a report can be written, and changes nothing at `path`.
    ///
    /// # Errors
    ///
    /// With the path, if nothing can be written there.
    pub fn open(path: &Path) -> io::Result<Self> {
        let target = Self::target(path).map_err(|error| named(path, &error))?;
        Ok(Self { target })
    }

    fn target(path: &Path) -> io::Result<Target> {
        // A link stays one.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if fs::metadata(&path).is_ok_and(|it| !it.is_file()) {
            return OpenOptions::new()
                .write(true)
                .open(&path)
                .map(Target::Direct);
        }
        let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        let name = format!(".{}.{}.part", name.to_string_lossy(), process::id());
        let beside = path.with_file_name(name);
        let file = File::create(&beside)?;
        Ok(Target::Beside { file, beside, path })
    }

    /// Puts a report in place of the earlier one.
    ///
    /// # Errors
    ///
    /// With the path, if it cannot be written; the earlier report stays then.
    pub fn write(mut self, report: &str) -> io::Result<()> {
        match &mut self.target {
            Target::Direct(file) => file.write_all(report.as_bytes()),
            Target::Beside { file, beside, path } => {
                let written = file.write_all(report.as_bytes());
                let written = written.and_then(|()| file.sync_all());
                let renamed = written.and_then(|()| fs::rename(beside, &*path));
                renamed.map_err(|error| named(path, &error))
            }
        }
    }
}

impl Drop for ReportFile {
    fn drop(&mut self) {
        if let Target::Beside { beside, .. } = &self.target {
            // Not there any more once it is renamed.
            let _removed = fs::remove_file(beside);
        }
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_report_stays_until_a_new_one_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("found.html");
        let entries = || fs::read_dir(folder.path()).unwrap().count();
        ReportFile::open(&path).unwrap().write("first").unwrap();
        let file = ReportFile::open(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        ReportFile::open(&path).unwrap().write("2nd").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "2nd");
        assert_eq!(entries(), 1);
        for wrong in [folder.path(), &folder.path().join("none/found.html")] {
            let error = ReportFile::open(wrong).unwrap_err().to_string();
            assert!(error.contains(&wrong.display().to_string()), "{error}");
        }
        assert_eq!(entries(), 1);
    }

    #[test]
    fn a_link_stays_one_and_a_device_is_written_itself() {
        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["found.html", "link"].map(|name| folder.path().join(name));
        fs::write(&path, "first").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        ReportFile::open(&link).unwrap().write("2nd").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "2nd");
        let null = Path::new("/dev/null");
        ReportFile::open(null).unwrap().write("report").unwrap();
        assert!(!fs::metadata(null).unwrap().is_file());
    }
}
