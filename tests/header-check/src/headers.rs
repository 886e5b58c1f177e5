//! The headers of one release, and a compiler that says what is in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::Item;

/// The variable that names the folders with the headers of several releases: `11.8=FOLDER:12.4=FOLDER`.
pub const VARIABLE: &str = "NVIDIA_HEADERS";

/// A release of CUDA: its major and its minor number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(pub u32, pub u32);

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl Release {
    fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        Some(Self(major.parse().ok()?, minor.parse().ok()?))
    }
}

/// What is included, in this order. CUPTI's own `cupti.h` would replace structures of the driver by empty ones.
const INCLUDED: [&str; 15] = [
    "cuda.h",
    "cudaProfiler.h",
    "cuda_runtime_api.h",
    "cupti_result.h",
    "cupti_version.h",
    "cupti_activity.h",
    "cupti_callbacks.h",
    "cupti_driver_cbid.h",
    "cupti_runtime_cbid.h",
    "generated_cuda_runtime_api_meta.h",
    "generated_cuda_meta.h",
    "nvml.h",
    "nvtx3/nvToolsExt.h",
    "nvtx3/nvToolsExtCuda.h",
    "nvtx3/nvToolsExtSync.h",
];

/// Makes the headers declare the functions that programs of former releases call, under the names of their symbols.
const SETTINGS: &str =
    "#define __CUDA_API_VERSION_INTERNAL\n#define NVML_NO_UNVERSIONED_FUNC_DEFS\n";

/// A header of NVIDIA's compiler, which its packages of libraries lack: what it makes of marks for that compiler.
const HOST_DEFINES: &str = "
#define __host__
#define __device__
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define __builtin_align__(bytes) __attribute__((aligned(bytes)))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define CUDARTAPI
#define CUDARTAPI_CDECL
#define CUDA_ARCH_HAS_FEATURE__(feature) 0
";

/// The headers of a release.
#[derive(Debug)]
pub struct Headers {
    release: Release,
    /// What each program begins with.
    beginning: String,
    folders: Vec<PathBuf>,
    scratch: PathBuf,
    names: BTreeSet<String>,
    /// The constants that are members of an enumeration and have their number beside them.
    numbers: BTreeMap<String, i64>,
}

impl Headers {
    /// Returns the headers that [`VARIABLE`] names; `None` if it names none.
    ///
    /// # Panics
    ///
    /// Panics if the variable is not as described there, or the headers cannot be compiled.
    pub fn of_environment() -> Option<Vec<Self>> {
        let named = env::var(VARIABLE).ok()?;
        let each = named.split(':').map(|named| {
            let (release, folder) = named.split_once('=').expect("a release and a folder");
            let release = Release::parse(release).expect("a release, such as 12.4");
            let mut folders = Vec::new();
            find_includes(Path::new(folder), &mut folders);
            assert!(!folders.is_empty(), "{folder} has no folder `include`");
            Self::new(release, folders, &INCLUDED)
        });
        Some(each.collect())
    }

    /// Returns headers that are included in this order, from these folders.
    ///
    /// # Panics
    ///
    /// Panics if they cannot be compiled.
    pub fn new(release: Release, mut folders: Vec<PathBuf>, included: &[&str]) -> Self {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let scratch = format!("header-check-{}-{number}", std::process::id());
        let scratch = env::temp_dir().join(scratch);
        fs::create_dir_all(scratch.join("crt")).expect("a folder for the program");
        fs::write(scratch.join("crt/host_defines.h"), HOST_DEFINES).expect("it can be written");
        folders.push(scratch.clone());
        let mut beginning = SETTINGS.to_owned();
        for header in included {
            let _ = writeln!(beginning, "#include <{header}>");
        }
        let mut headers = Self {
            release,
            beginning,
            folders,
            scratch,
            names: BTreeSet::new(),
            numbers: BTreeMap::new(),
        };
        let text = headers.compile(&headers.beginning, &["-E", "-dD"]);
        headers.read_names(&text);
        headers
    }

    /// Returns the release.
    pub fn release(&self) -> Release {
        self.release
    }

    /// Returns `true` if the headers declare or define a name.
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Returns the structures of which there are several, from one number on: `S2`, `S3` and so on, where `S` is 1. The
    /// first one is always among them, so that it is missed where it is not there.
    pub fn numbered(&self, name: &str, first: u32) -> BTreeSet<String> {
        let number = |end: &str| {
            if end.is_empty() {
                Some(1)
            } else {
                end.parse().ok()
            }
        };
        let all = self.names.range(name.to_owned()..);
        let all = all.take_while(|each| each.starts_with(name));
        let is_wanted =
            |each: &&String| number(&each[name.len()..]).is_some_and(|n: u32| n >= first);
        let mut found: BTreeSet<String> = all.filter(is_wanted).cloned().collect();
        found.insert(if first == 1 {
            name.to_owned()
        } else {
            format!("{name}{first}")
        });
        found
    }

    /// Returns the constants whose names have this beginning: the ends of their names, and their numbers.
    pub fn numbers<'a>(&'a self, beginning: &'a str) -> impl Iterator<Item = (&'a str, i64)> {
        let all = self.numbers.range(beginning.to_owned()..);
        all.map_while(move |(name, value)| Some((name.strip_prefix(beginning)?, *value)))
    }

    /// Returns the end of the name of the constant with this beginning and this number.
    pub fn named<'a>(&'a self, beginning: &'a str, number: i64) -> Option<&'a str> {
        let mut all = self.numbers(beginning);
        all.find_map(|(end, value)| (value == number).then_some(end))
    }

    /// Collects what follows the preprocessor: words of the program, and names of macros with a value.
    fn read_names(&mut self, text: &str) {
        for line in text.lines() {
            if let Some(defined) = line.strip_prefix("#define ") {
                let mut words = defined.split(' ');
                let name = words.next().unwrap_or_default();
                // A macro that is another name is none of its own, and neither is one that takes arguments.
                let is_value = words.next().is_some_and(|value| !value.starts_with(name));
                if is_value && !name.contains('(') {
                    self.names.insert(name.to_owned());
                }
            } else if !line.starts_with('#') {
                let words =
                    line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
                let words = words.filter(|word| !word.is_empty()).map(ToOwned::to_owned);
                self.names.extend(words);
                for member in line.split([',', '{', '}']) {
                    if let Some((name, number)) = member.split_once('=')
                        && let Ok(number) = number.trim().parse()
                    {
                        self.numbers.insert(name.trim().to_owned(), number);
                    }
                }
            }
        }
    }

    /// Returns what the headers have for each item.
    pub(crate) fn ask(&self, items: &[&Item]) -> Vec<String> {
        if items.is_empty() {
            return Vec::new();
        }
        let mut program = self.beginning.clone();
        program.push_str(include_str!("probe.hpp"));
        program.push_str("int main() {\n");
        for (number, item) in items.iter().enumerate() {
            let _ = writeln!(program, "say({number}, {});", item.question());
        }
        program.push_str("}\n");
        let binary = self.scratch.join("probe");
        let output = ["-o", &binary.to_string_lossy()];
        self.compile(&program, &output);
        let said = Command::new(&binary).output().expect("the program starts");
        let said = String::from_utf8(said.stdout).expect("text");
        let answers: Vec<String> = said
            .lines()
            .enumerate()
            .map(|(number, line)| {
                let (said, answer) = line.split_once(' ').expect("a number and an answer");
                assert_eq!(said, number.to_string(), "one answer for each item");
                answer.to_owned()
            })
            .collect();
        assert_eq!(answers.len(), items.len(), "one answer for each item");
        answers
    }

    /// Compiles a program of C++, and returns what the compiler prints.
    fn compile(&self, program: &str, arguments: &[&str]) -> String {
        let source = self.scratch.join("probe.cpp");
        fs::write(&source, program).expect("the program can be written");
        let compiler = env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
        let mut command = Command::new(compiler);
        command.args(["-std=c++17", "-w", "-fmax-errors=20"]);
        for folder in &self.folders {
            command.arg("-isystem").arg(folder);
        }
        command.arg(&source).args(arguments).stdin(Stdio::null());
        let output = command.output().expect("there is a compiler of C++");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "CUDA {}: {said}", self.release);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Headers {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

/// Collects the folders that are called `include`.
fn find_includes(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
    {
        if path.ends_with("include") {
            found.push(path);
        } else {
            find_includes(&path, found);
        }
    }
}
