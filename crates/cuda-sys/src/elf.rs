//! Finds files of libraries that were cut off, such as by a download that broke off or a full disk.
//!
//! The system's loader maps a library by its headers, and the program dies of a signal where the file ends too early.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// The bytes of the header of a 64-bit file, of an entry of its program headers and of one of its section headers.
const HEADER: usize = 64;
const SEGMENT: usize = 56;
const SECTION: usize = 64;

/// A section without bytes in the file: `SHT_NOBITS`.
const NO_BITS: u32 = 8;

/// Returns what is wrong with a library's file, if it ends before what its headers say is in it. A file that is no 64-bit ELF
/// file in the byte order of this machine is left to the system's loader, and so is one that cannot be read.
pub(crate) fn check(path: &Path) -> Result<(), String> {
    let Ok(mut file) = File::open(path) else {
        return Ok(());
    };
    let Ok(metadata) = file.metadata() else {
        return Ok(());
    };
    match end(&mut file) {
        Ok(Some(end)) if end > metadata.len() => Err(format!(
            "the file is incomplete: it has {} bytes of {end}",
            metadata.len()
        )),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(format!(
            "the file is incomplete: it has {} bytes, and ends in its headers",
            metadata.len()
        )),
        _ => Ok(()),
    }
}

/// Returns how long a file is at least by its headers; `None` if it is no such file.
fn end(file: &mut (impl Read + Seek)) -> io::Result<Option<u64>> {
    let mut magic = [0; 6];
    // 64 bits, in this machine's byte order.
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    if file.read(&mut magic)? < magic.len() || magic != [0x7f, b'E', b'L', b'F', 2, order] {
        return Ok(None);
    }
    file.rewind()?;
    let mut header = [0; HEADER];
    file.read_exact(&mut header)?;
    let tables = [
        (long(&header, 32), half(&header, 54), half(&header, 56)),
        (long(&header, 40), half(&header, 58), half(&header, 60)),
    ];
    let [segments, sections] = tables;
    let mut end = HEADER as u64;
    for (start, size, count) in tables {
        end = end.max(start.saturating_add(u64::from(size) * u64::from(count)));
    }
    let least = |(start, size, count): (u64, u16, u16), least: usize| {
        (start > 0 && usize::from(size) >= least).then_some((start, size, count))
    };
    each::<SEGMENT>(file, least(segments, SEGMENT), |segment| {
        end = end.max(long(segment, 8).saturating_add(long(segment, 32)));
    })?;
    each::<SECTION>(file, least(sections, SECTION), |section| {
        if word(section, 4) != NO_BITS {
            end = end.max(long(section, 24).saturating_add(long(section, 32)));
        }
    })?;
    Ok(Some(end))
}

/// Calls `visit` with the beginning of each entry of a table.
fn each<const N: usize>(
    file: &mut (impl Read + Seek),
    table: Option<(u64, u16, u16)>,
    mut visit: impl FnMut(&[u8; N]),
) -> io::Result<()> {
    let Some((start, size, count)) = table else {
        return Ok(());
    };
    for index in 0..u64::from(count) {
        let place = start.saturating_add(index * u64::from(size));
        file.seek(SeekFrom::Start(place))?;
        let mut entry = [0; N];
        file.read_exact(&mut entry)?;
        visit(&entry);
    }
    Ok(())
}

fn bytes<const N: usize>(from: &[u8], at: usize) -> [u8; N] {
    from.get(at..)
        .and_then(<[u8]>::first_chunk)
        .copied()
        .unwrap_or([0; N])
}

fn half(from: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(bytes(from, at))
}

fn word(from: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes(from, at))
}

fn long(from: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes(from, at))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn written(name: &str, bytes: &[u8]) -> PathBuf {
        let file = std::env::temp_dir().join(format!("profiler-{name}-{}", std::process::id()));
        std::fs::write(&file, bytes).expect("it can be written");
        file
    }

    #[test]
    fn a_file_that_was_cut_off_is_found_wherever_it_ends() {
        let program = std::env::current_exe().expect("this program");
        assert_eq!(check(&program), Ok(()));
        let whole = std::fs::read(&program).expect("it can be read");
        for kept in [6, 63, 64, 500, whole.len() / 2, whole.len() - 1] {
            let file = written("cut", &whole[..kept]);
            let found = check(&file);
            assert!(found.is_err(), "{kept} of {}", whole.len());
        }
        std::fs::remove_file(written("cut", &[])).expect("it is there");
    }

    #[test]
    fn what_is_no_library_is_left_to_the_loader() {
        for bytes in [&b""[..], b"\x7fEL", b"INPUT(libcupti.so.12)", &[0; 100]] {
            let file = written("other", bytes);
            assert_eq!(check(&file), Ok(()), "{bytes:?}");
            std::fs::remove_file(file).expect("it is there");
        }
        assert_eq!(check(Path::new("/no/such/file")), Ok(()));
    }
}
