//! Removes a function from the symbol table of a library file, as if the library were older.

/// The section type `SHT_DYNSYM`.
const DYNAMIC_SYMBOLS: u32 = 11;
/// The size of a symbol in bytes, and the offsets of its section index and its value.
const SYMBOL: usize = 24;
const SECTION_AT: usize = 6;
const VALUE_AT: usize = 8;

/// Makes `symbol` undefined in a 64-bit little-endian ELF library. Returns `None` if it is not
/// defined there.
///
/// The library must not refer to the symbol itself. `build.rs` ensures that: the library's own
/// calls are bound when it is linked.
pub(super) fn hide(library: &mut [u8], symbol: &str) -> Option<()> {
    if library.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let (sections, size, count) = (
        word(library, 0x28, 8)?,
        word(library, 0x3a, 2)?,
        word(library, 0x3c, 2)?,
    );
    let section = |index: usize| sections + index * size;
    let is_symbols = |at: &usize| word(library, at + 4, 4) == Some(DYNAMIC_SYMBOLS as usize);
    let symbols = (0..count).map(section).find(is_symbols)?;
    let names = section(word(library, symbols + 0x28, 4)?);
    let names = word(library, names + 0x18, 8)?;
    let (start, bytes) = (
        word(library, symbols + 0x18, 8)?,
        word(library, symbols + 0x20, 8)?,
    );
    let found = (start..start + bytes).step_by(SYMBOL).find(|at| {
        let name = word(library, *at, 4).and_then(|name| library.get(names + name..));
        name.and_then(|name| name.strip_prefix(symbol.as_bytes()))
            .is_some_and(|rest| rest.first() == Some(&0))
    })?;
    library
        .get_mut(found + SECTION_AT..found + SECTION_AT + 2)?
        .fill(0);
    library
        .get_mut(found + VALUE_AT..found + VALUE_AT + 8)?
        .fill(0);
    Some(())
}

/// Reads a little-endian number of up to 8 bytes.
fn word(library: &[u8], at: usize, bytes: usize) -> Option<usize> {
    let mut value = [0; 8];
    value[..bytes].copy_from_slice(library.get(at..at.checked_add(bytes)?)?);
    usize::try_from(u64::from_le_bytes(value)).ok()
}
