//! What is kept of a file takes in memory, in bytes, when the process has its largest size.
//!
//! Each is the growth of the resident memory of `report` or `html`, whichever is larger, with the number of such things, in files
//! that have little else (x86-64, glibc), rounded up. So they contain what the time line, tables and pages make of them.

/// A span that becomes a slice.
pub(super) const EVENT: u64 = 280;
/// One half of a pair.
pub(super) const HALF: u64 = 170;
/// What is known of a span beyond that.
pub(super) const WORK: u64 = 190;
pub(super) const RARE: u64 = 200;
pub(super) const DETAILS: u64 = 340;
pub(super) const STEP: u64 = 150;
/// A thread or a stream.
pub(super) const TRACK: u64 = 1050;
/// The name of a process.
pub(super) const PROCESS: u64 = 160;
/// A name that becomes a row, and each byte of it: a page has it in many places.
pub(super) const NAME: u64 = 3200;
pub(super) const NAME_BYTE: u64 = 15;
/// Shapes, categories and other texts that are kept once, and each byte of all texts but names.
pub(super) const TEXT: u64 = 300;
pub(super) const TEXT_BYTE: u64 = 3;
/// A counter, and one of its values, or another that has little beside its time.
pub(super) const COUNTER: u64 = 700;
pub(super) const VALUE: u64 = 32;
/// A replay, a wait, or a time without records.
pub(super) const NOTE: u64 = 200;
/// A pair that the program added, or an entry of the table of names.
pub(super) const PAIR: u64 = 230;
