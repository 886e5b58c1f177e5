//! A file that is written piece by piece: compressed if its name says so, and visible under its name only when it is
//! complete.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::ExportError;
use crate::process::output::new_file::NewFile;
use crate::process::output::{READER_TIMEOUT, WriteTimeout};

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
        let is_gzip = path
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
        Ok(if is_gzip {
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

/// Writes a whole file.
///
/// # Errors
///
/// Returns an error that names the file, if it cannot be created or written.
#[cfg(feature = "export")]
pub(super) fn write(path: &Path, content: &[u8]) -> Result<(), ExportError> {
    let written = ExportFile::create(path).and_then(|mut file| {
        file.write_all(content)?;
        file.finish()
    });
    written.map_err(|source| ExportError::io(path, source))
}
