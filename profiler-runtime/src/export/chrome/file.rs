//! A file that is there when it is whole: written under another name in the same folder, then renamed. What is no file
//! but a device or a pipe stays what it is, and is written to.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flate2::Compression;
use flate2::write::GzEncoder;

/// Bytes that are gathered for one write.
const BUFFER: usize = 1 << 16;
/// Where what the process has open stands, which may be a file: that is written to as well.
const DESCRIPTORS: [&str; 4] = ["/dev/fd", "/dev/stderr", "/dev/stdout", "/proc"];
/// Bytes of a name that is part of the one it is written under.
const LONGEST: usize = 200;

fn is_descriptor(path: &Path) -> bool {
    DESCRIPTORS.iter().any(|known| path.starts_with(known))
}

/// A file in the making; given up, with all that was written, where it is not finished.
pub(super) struct NewFile {
    sink: Option<Sink>,
    /// Where it is written, and what it is to be called; none where that is no file.
    renamed: Option<(PathBuf, PathBuf)>,
}

enum Sink {
    Plain(BufWriter<File>),
    Gzip(Box<BufWriter<GzEncoder<File>>>),
}

impl NewFile {
    /// Compressed where the name ends with `.gz`.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let Some(name) = path.file_name() else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the path does not end with the name of a file",
            ));
        };
        let is_other = |kind: fs::Metadata| !kind.is_file() && !kind.is_dir();
        let (file, renamed) = if is_descriptor(path) || fs::metadata(path).is_ok_and(is_other) {
            (OpenOptions::new().append(true).open(path)?, None)
        } else {
            // A link goes on to lead to the file.
            let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            let name = path.file_name().unwrap_or(name).to_owned();
            let (file, temporary) = create_beside(&path, &name)?;
            (file, Some((temporary, path)))
        };
        let is_gzip = path
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
        let sink = if is_gzip {
            let encoder = GzEncoder::new(file, Compression::fast());
            Sink::Gzip(Box::new(BufWriter::with_capacity(BUFFER, encoder)))
        } else {
            Sink::Plain(BufWriter::with_capacity(BUFFER, file))
        };
        Ok(Self {
            sink: Some(sink),
            renamed,
        })
    }

    /// Gives the file its name, which another one may have had.
    pub(super) fn finish(mut self) -> io::Result<()> {
        match self.sink.take() {
            Some(Sink::Plain(mut file)) => file.flush()?,
            Some(Sink::Gzip(buffer)) => {
                let encoder = buffer
                    .into_inner()
                    .map_err(io::IntoInnerError::into_error)?;
                encoder.finish()?.flush()?;
            }
            None => {}
        }
        match &self.renamed {
            Some((temporary, path)) => fs::rename(temporary, path),
            None => Ok(()),
        }
    }
}

/// A new file in the folder of `path`, with a name that nobody reads.
fn create_beside(path: &Path, name: &OsStr) -> io::Result<(File, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Relaxed);
        let mut temporary = OsString::from(".");
        // A name may be as long as the system takes, and has no room for more then.
        if name.len() <= LONGEST {
            temporary.push(name);
        }
        temporary.push(format!(".{}-{number}.part", process::id()));
        let temporary = path.with_file_name(temporary);
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary)
        {
            Err(taken) if taken.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) => return Ok((file, temporary)),
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            Some(Sink::Plain(file)) => file.write(bytes),
            Some(Sink::Gzip(file)) => file.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Some(Sink::Plain(file)) => file.flush(),
            Some(Sink::Gzip(file)) => file.flush(),
            None => Ok(()),
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        let Some((temporary, _)) = &self.renamed else {
            return;
        };
        // After the renaming there is none.
        if self.sink.take().is_some() || temporary.exists() {
            let _ = fs::remove_file(temporary);
        }
    }
}
