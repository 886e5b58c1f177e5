//! A file that is written piece by piece: compressed if its name says so, and visible under its name only when it is
//! complete.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
#[cfg(feature = "export")]
use profiler_host::process::output::new_file;
use profiler_host::process::output::new_file::NewFile;
use profiler_host::process::output::{READER_TIMEOUT, WriteTimeout};

#[cfg(feature = "export")]
use super::ExportError;

/// The buffer size for one write.
const BUFFER: usize = 1 << 16;

/// A file being written. Dropping it unfinished removes what was written.
pub(super) enum ExportFile {
    Plain(BufWriter<NewFile>),
    Gzip(Box<BufWriter<GzEncoder<NewFile>>>),
}

impl ExportFile {
    /// Creates the file; compressed if the name ends with `.gz`.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = NewFile::create(path, WriteTimeout::WithoutProgress(READER_TIMEOUT))?;
        Ok(if is_gzip(path) {
            let encoder = GzEncoder::new(file, Compression::fast());
            Self::Gzip(Box::new(BufWriter::with_capacity(BUFFER, encoder)))
        } else {
            Self::Plain(BufWriter::with_capacity(BUFFER, file))
        })
    }

    /// Gives the file its name, replacing a file of that name.
    pub(super) fn finish(self) -> io::Result<()> {
        let file = match self {
            Self::Plain(buffer) => buffer
                .into_inner()
                .map_err(io::IntoInnerError::into_error)?,
            Self::Gzip(buffer) => {
                let encoder = buffer
                    .into_inner()
                    .map_err(io::IntoInnerError::into_error)?;
                encoder.finish()?
            }
        };
        file.finish()
    }
}

impl Write for ExportFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(file) => file.flush(),
        }
    }
}

/// Writes a whole file; compressed if the name ends with `.gz`.
///
/// # Errors
///
/// Returns an error that names the file, if it cannot be created or written.
#[cfg(feature = "export")]
pub(super) fn write(path: &Path, content: &[u8]) -> Result<(), ExportError> {
    let write = || {
        let timeout = WriteTimeout::WithoutProgress(READER_TIMEOUT);
        if !is_gzip(path) {
            return new_file::write(path, content, timeout);
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content)?;
        new_file::write(path, &encoder.finish()?, timeout)
    };
    write().map_err(|source| ExportError::io(path, source))
}

/// Returns `true` if the name of a file says that it is compressed.
fn is_gzip(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}
