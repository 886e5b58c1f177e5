//! Reads what the tool has written.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// A line of the file: a call of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The process: 0 is the one that loaded the tool, 1 one that was forked from it.
    pub process: u32,
    /// The thread, counted from 0 in the order of the first calls.
    pub thread: u32,
    /// The call.
    pub call: Call,
}

/// The attributes of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// The name.
    pub name: String,
    /// `true` if the name was passed as a registered string.
    pub is_registered: bool,
    /// The number of the category.
    pub category: u32,
    /// Alpha, red, green and blue.
    pub colour: u32,
    /// The payload, if there is one.
    pub payload: Option<u64>,
}

/// A call of a tool's function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// `nvtxDomainCreateA`.
    Domain(String),
    /// `nvtxDomainNameCategoryA`.
    Category(u32, String),
    /// `nvtxDomainRegisterStringA`.
    Register(String),
    /// `nvtxDomainRangePushEx`.
    Push(Range),
    /// `nvtxDomainRangePop`.
    Pop,
    /// `nvtxDomainRangeStartEx`, with the number that it returned.
    Start(u64, Range),
    /// `nvtxDomainRangeEnd`.
    End(u64),
    /// `nvtxNameOsThreadA`, with the system's number of the thread.
    Thread(u32, String),
    /// `nvtxNameCuStreamA`, with the handle.
    Stream(usize, String),
    /// A call that breaks the rules.
    Wrong(String),
}

impl Call {
    /// Reads the file that the tool has written; nothing if there is none.
    ///
    /// # Panics
    ///
    /// Panics if a line is none of the tool's.
    #[must_use]
    pub fn read_all(file: &Path) -> Vec<Line> {
        let text = fs::read_to_string(file).unwrap_or_default();
        let read = |line: &str| {
            let fields: Vec<&str> = line.split('\t').collect();
            read_line(&fields).unwrap_or_else(|| panic!("no line of the tool: {line:?}"))
        };
        text.lines().map(read).collect()
    }
}

fn read_line(fields: &[&str]) -> Option<Line> {
    let [process, thread, call @ ..] = fields else {
        return None;
    };
    Some(Line {
        process: process.parse().ok()?,
        thread: thread.parse().ok()?,
        call: read_call(call)?,
    })
}

fn read_call(fields: &[&str]) -> Option<Call> {
    Some(match fields {
        ["domain", name] => Call::Domain((*name).to_owned()),
        ["category", number, name] => Call::Category(number.parse().ok()?, (*name).to_owned()),
        ["register", name] => Call::Register((*name).to_owned()),
        ["push", range @ ..] => Call::Push(read_range(range)?),
        ["pop"] => Call::Pop,
        ["start", id, range @ ..] => Call::Start(id.parse().ok()?, read_range(range)?),
        ["end", id] => Call::End(id.parse().ok()?),
        ["thread", id, name] => Call::Thread(id.parse().ok()?, (*name).to_owned()),
        ["stream", handle, name] => Call::Stream(handle.parse().ok()?, (*name).to_owned()),
        ["wrong", what] => Call::Wrong((*what).to_owned()),
        _ => return None,
    })
}

fn read_range(fields: &[&str]) -> Option<Range> {
    let [kind, category, colour, payload, name] = fields else {
        return None;
    };
    Some(Range {
        name: (*name).to_owned(),
        is_registered: *kind == "registered",
        category: category.parse().ok()?,
        colour: colour.parse().ok()?,
        payload: match *payload {
            "none" => None,
            number => Some(number.parse().ok()?),
        },
    })
}

/// Returns the path of the tool that Cargo built next to the running program.
///
/// # Panics
///
/// Panics if there is none: the program's package does not depend on this crate.
#[must_use]
pub fn built() -> PathBuf {
    found().expect("the tool was built")
}

/// Returns the path of the tool, if it lies next to the running program or where Cargo builds it.
#[must_use]
pub fn found() -> Option<PathBuf> {
    let file = format!(
        "{}profiler_nvtx_recorder{}",
        env::consts::DLL_PREFIX,
        env::consts::DLL_SUFFIX
    );
    let program = env::current_exe().ok()?;
    let folders = program.ancestors().skip(1).take(3);
    let mut places =
        folders.flat_map(|folder| [folder.join(&file), folder.join("deps").join(&file)]);
    places.find(|place| place.is_file())
}
