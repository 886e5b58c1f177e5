//! The settings that the environment variables make.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use profiler_host::process::host::ANONYMOUS;
use profiler_host::process::{platform, signals};

use super::interval::{parse_interval, parse_interval_or_off};
use super::paths::{absolute, is_no_name};
use super::reader::{Privileges, Reader, parse_bool, parse_bytes, parse_number};
use super::values::DEFAULT_CELL_MEMORY;
use super::{Backend, Filter, ImplicitStream, KernelRecording, Nvtx, Schedule, SummaryTarget};

/// The values of all variables.
#[derive(Clone, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a setting of its own"
)]
pub(crate) struct Settings {
    pub(crate) enabled: bool,
    pub(crate) filter: Filter,
    /// `true` if the running statistics count callers.
    pub(crate) callers: bool,
    pub(crate) summary: SummaryTarget,
    /// How often the summary's file is rewritten while the program runs.
    pub(crate) summary_interval: Option<Duration>,
    pub(crate) tensorboard: Option<PathBuf>,
    pub(crate) max_names: usize,
    /// How many bytes the cells of the statistics may take.
    pub(crate) cell_memory: usize,
    pub(crate) ring: usize,
    pub(crate) backend: Backend,
    pub(crate) thread_time: bool,
    pub(crate) cuda_library: Option<PathBuf>,
    pub(crate) cuda_events: usize,
    pub(crate) cuda_stream: ImplicitStream,
    /// How often the sensors of the devices are read.
    pub(crate) gpu_samples: Option<Duration>,
    /// `true` if the summary says which functions keep the devices waiting.
    pub(crate) gpu_idle: bool,
    pub(crate) nvml_library: Option<PathBuf>,
    /// The value of `PROFILER_KERNELS`.
    pub(crate) kernels: Option<KernelRecording>,
    pub(crate) cupti_library: Option<PathBuf>,
    pub(crate) nvtx: Nvtx,
    pub(crate) session: SessionSettings,
    /// `true` if what was asked for is written before a signal ends the process.
    pub(crate) signals: bool,
    /// The variables that were set. They take precedence over the builder of the program.
    pub(crate) from_environment: Vec<&'static str>,
    /// These variables with their values, by name.
    pub(crate) variables: Vec<(String, String)>,
}

impl Settings {
    /// Reads the environment. A value that is not valid is left at its default; returns the warnings about these.
    pub(crate) fn from_environment() -> (Self, Vec<String>) {
        let names: Vec<String> = platform::vars_os()
            .map(|(name, _)| name.to_string_lossy().into_owned())
            .collect();
        Self::read(&|name| env::var_os(name), &names, Privileges::of_process())
    }

    fn read(
        get: &dyn Fn(&str) -> Option<OsString>,
        names: &[String],
        privileges: Privileges,
    ) -> (Self, Vec<String>) {
        let mut reader = Reader::new(get, privileges);
        let mut settings = Self::read_values(&mut reader);
        let (set, mut problems) = reader.finish(names);
        let value = |name| get(name).unwrap_or_default().to_string_lossy().into_owned();
        let values = set.iter().map(|name| ((*name).to_owned(), value(name)));
        settings.variables = values.collect();
        settings.variables.sort_unstable();
        settings.from_environment = set;
        problems.extend(settings.without_effect());
        if settings.session.trace.is_some() && !cfg!(feature = "trace") {
            problems.push(
                "PROFILER_TRACE is set, but profiler-runtime was built without its feature `trace`: nothing is \
                 recorded; build it with the feature"
                    .to_owned(),
            );
        }
        (settings, problems)
    }

    /// Returns what made a setting: the variable if it is set, else the method of the program's builder. Messages name what
    /// the user has written.
    pub(crate) fn origin(&self, variable: &'static str, method: &'static str) -> &'static str {
        if self.from_environment.contains(&variable) {
            variable
        } else {
            method
        }
    }

    /// Returns warnings about variables that other settings leave without effect.
    fn without_effect(&self) -> Vec<String> {
        let reason = if !cfg!(feature = "cuda") {
            "profiler-runtime was built without its feature `cuda`: build it with the feature"
        } else if self.backend == Backend::Cpu {
            "PROFILER_BACKEND=cpu turns GPU times off: leave one of them out"
        } else {
            return Vec::new();
        };
        let of_cuda = [
            "PROFILER_CUDA_LIBRARY",
            "PROFILER_CUDA_EVENTS",
            "PROFILER_CUDA_STREAM",
            "PROFILER_GPU_SAMPLES",
            "PROFILER_NVML_LIBRARY",
            "PROFILER_CUPTI_LIBRARY",
        ];
        let set = of_cuda
            .into_iter()
            .filter(|name| self.from_environment.contains(name));
        // `auto` asks for nothing that could be missing.
        let asks = |name, asked| (asked && !cfg!(feature = "cuda")).then_some(name);
        let kernels = asks(
            "PROFILER_KERNELS",
            self.kernels == Some(KernelRecording::Required),
        );
        let nvtx = asks("PROFILER_NVTX", self.nvtx == Nvtx::On);
        set.chain(kernels)
            .chain(nvtx)
            .map(|name| format!("{name} has no effect, since {reason}"))
            .collect()
    }

    fn read_values(reader: &mut Reader<'_>) -> Self {
        let number = |reader: &mut Reader<'_>, name, (least, most), default| {
            let parse = |text: &str| parse_number(text, least, most);
            reader.text(name, parse).unwrap_or(default)
        };
        // Only a wrong value matters here: `host` reads it too, for logs that are opened before.
        let _ = reader.text(ANONYMOUS, parse_bool);
        let problems = reader.problems.len();
        let summary = reader
            .value_or_path(
                "PROFILER_SUMMARY",
                |value| {
                    let target = SummaryTarget::from_os(value);
                    let is_file = matches!(target, SummaryTarget::File(_));
                    (!is_file || !is_no_name(value)).then_some(target)
                },
                |target| matches!(target, SummaryTarget::File(_)),
            )
            .unwrap_or_else(|| {
                let instead = "the table goes to standard error";
                if reader.explain_word(problems, "PROFILER_SUMMARY", instead) {
                    SummaryTarget::Stderr
                } else {
                    SummaryTarget::Off
                }
            });
        let objection = summary.objection();
        let (summary, refused) = summary.or_stderr();
        let refused = refused.map(|refused| refused.to_string());
        let problems = objection.into_iter().chain(refused);
        let problems = problems.map(|problem| format!("PROFILER_SUMMARY: {problem}"));
        reader.problems.extend(problems);
        Self {
            enabled: reader.text("PROFILER_ENABLED", parse_bool).unwrap_or(true),
            callers: reader
                .text("PROFILER_CALLERS", parse_bool)
                .unwrap_or_else(|| summary.shows_callers()),
            filter: reader
                .text("PROFILER_FILTER", |text| {
                    Some(Filter::parse(text)).filter(|filter| !filter.is_empty())
                })
                .unwrap_or_default(),
            summary,
            summary_interval: reader.text("PROFILER_SUMMARY_INTERVAL", parse_interval),
            tensorboard: reader.path_or_off("PROFILER_TENSORBOARD"),
            max_names: number(reader, "PROFILER_MAX_NAMES", (1, 60_000), 4096),
            cell_memory: reader
                .text("PROFILER_CELL_MEMORY", parse_bytes)
                .unwrap_or(DEFAULT_CELL_MEMORY),
            ring: number(reader, "PROFILER_RING", (16, 1 << 20), 2048),
            backend: reader
                .text("PROFILER_BACKEND", Backend::parse)
                .unwrap_or_default(),
            thread_time: reader
                .text("PROFILER_THREAD_TIME", parse_bool)
                .unwrap_or(false),
            cuda_library: reader.value("PROFILER_CUDA_LIBRARY", |path| Some(PathBuf::from(path))),
            cuda_events: number(reader, "PROFILER_CUDA_EVENTS", (1, 1 << 20), 4096),
            cuda_stream: reader
                .text("PROFILER_CUDA_STREAM", ImplicitStream::parse)
                .unwrap_or_default(),
            gpu_samples: reader
                .text("PROFILER_GPU_SAMPLES", parse_interval_or_off)
                .filter(|interval| !interval.is_zero()),
            gpu_idle: reader.text("PROFILER_GPU_IDLE", parse_bool).unwrap_or(true),
            nvml_library: reader.value("PROFILER_NVML_LIBRARY", |path| Some(PathBuf::from(path))),
            kernels: reader.text("PROFILER_KERNELS", KernelRecording::parse),
            cupti_library: reader.value("PROFILER_CUPTI_LIBRARY", |path| Some(PathBuf::from(path))),
            nvtx: reader
                .text("PROFILER_NVTX", Nvtx::parse)
                .unwrap_or_default(),
            session: SessionSettings::read(reader),
            signals: reader.text("PROFILER_SIGNALS", parse_bool).unwrap_or(true),
            from_environment: Vec::new(),
            variables: Vec::new(),
        }
    }
}

/// The session that the environment describes.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionSettings {
    pub(crate) schedule: Option<Schedule>,
    /// Where its traces go. Without it there is no session.
    pub(crate) trace: Option<PathBuf>,
    /// How many scopes one trace holds.
    pub(crate) capacity: Option<usize>,
    /// The name whose calls are its steps.
    pub(crate) step: Option<String>,
    /// The file that starts and stops it.
    pub(crate) control: Option<PathBuf>,
    /// The signal that starts and stops it.
    pub(crate) signal: Option<i32>,
}

impl SessionSettings {
    fn read(reader: &mut Reader<'_>) -> Self {
        let mut error = None;
        let schedule = reader.text("PROFILER_SCHEDULE", |text| {
            Schedule::parse(text)
                .map_err(|wrong| error = Some(wrong))
                .ok()
        });
        // Replace the general message by the one of the error, which names the wrong part.
        if let (Some(error), Some(problem)) = (error, reader.problems.last_mut()) {
            *problem = format!(
                "PROFILER_SCHEDULE: {error}; the default is used: one window from start to end"
            );
        }
        let settings = Self {
            schedule,
            trace: reader.path_or_off("PROFILER_TRACE"),
            capacity: reader.text("PROFILER_TRACE_CAPACITY", |text| {
                parse_number(text, 1000, 1_000_000_000)
            }),
            step: reader.text("PROFILER_STEP", |name| Some(name.to_owned())),
            control: reader.value("PROFILER_CONTROL", |path| Some(absolute(path))),
            signal: reader.text("PROFILER_SIGNAL", signals::parse),
        };
        // A trace that was ignored has a warning of its own.
        if settings.trace.is_none() && !reader.ignored.contains(&"PROFILER_TRACE") {
            let without_effect = [
                ("PROFILER_SCHEDULE", settings.schedule.is_some()),
                ("PROFILER_TRACE_CAPACITY", settings.capacity.is_some()),
                ("PROFILER_STEP", settings.step.is_some()),
                ("PROFILER_CONTROL", settings.control.is_some()),
                ("PROFILER_SIGNAL", settings.signal.is_some()),
            ];
            for (name, _) in without_effect.iter().filter(|(_, is_set)| *is_set) {
                reader.problems.push(format!(
                    "{name} is set and PROFILER_TRACE is not, so that nothing would be written: set it to a file or a \
                     folder"
                ));
            }
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::super::{VARIABLES, Variable};
    use super::*;

    fn read(variables: &[(&str, &str)]) -> (Settings, Vec<String>) {
        read_with(Privileges::Same, variables)
    }

    fn read_with(privileges: Privileges, variables: &[(&str, &str)]) -> (Settings, Vec<String>) {
        let variables: Vec<(String, String)> = variables
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        let get = |name: &str| {
            variables
                .iter()
                .find(|(other, _)| other == name)
                .map(|(_, value)| value.clone().into())
        };
        let names: Vec<String> = variables.iter().map(|(name, _)| name.clone()).collect();
        Settings::read(&get, &names, privileges)
    }

    // Tests each variable alone: a new one that takes a path must be marked in the table.
    #[test]
    fn with_raised_privileges_no_variable_names_a_path() {
        const PATH: &str = "/a/path.json";
        // The folder may get a drive letter.
        const FILE: &str = "path.json";
        // These take any text, and name no file.
        let names = ["PROFILER_FILTER", "PROFILER_STEP"];
        for Variable {
            name, names_path, ..
        } in VARIABLES
        {
            let (settings, _) = read(&[(name, PATH)]);
            let has_path = format!("{settings:?}").contains(FILE);
            assert_eq!(has_path && !names.contains(&name), names_path, "{name}");

            let (settings, problems) = read_with(Privileges::Raised, &[(name, PATH)]);
            let has_path = format!("{settings:?}").contains(FILE);
            assert_eq!(has_path, names.contains(&name), "{name}: {settings:?}");
            assert_eq!(settings.from_environment.contains(&name), has_path);
            let is_reported = problems
                .iter()
                .any(|problem| problem.contains("raised privileges"));
            assert_eq!(is_reported, names_path, "{name}: {problems:?}");
        }
    }

    #[test]
    fn raised_privileges_are_reported_once_and_leave_the_rest() {
        let (settings, problems) = read_with(
            Privileges::Raised,
            &[
                ("PROFILER_TRACE", "trace.json"),
                ("PROFILER_SCHEDULE", "active=1"),
                ("PROFILER_TENSORBOARD", "runs"),
                ("PROFILER_SUMMARY", "stderr"),
                ("PROFILER_RING", "64"),
            ],
        );
        assert_eq!(settings.summary, SummaryTarget::Stderr);
        assert_eq!(settings.ring, 64);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].contains("PROFILER_TENSORBOARD, PROFILER_TRACE are ignored"),
            "{problems:?}"
        );
    }

    #[test]
    fn a_word_in_place_of_a_file_is_refused_with_what_to_write() {
        for (name, word, example) in [
            ("PROFILER_SUMMARY", "json", "run.json"),
            ("PROFILER_SUMMARY", "table", "run.txt"),
            ("PROFILER_SUMMARY", "CSV", "run.csv"),
            ("PROFILER_TRACE", "1", "run.json"),
            ("PROFILER_TRACE", "true", "run.json"),
            ("PROFILER_TRACE", "perfetto", "run.pftrace"),
            ("PROFILER_TRACE", "-", "run.json"),
            ("PROFILER_TENSORBOARD", "1", "runs"),
        ] {
            let (settings, problems) = read(&[(name, word)]);
            let expected = format!("{name}={word} is no name of ");
            let example = format!("write {name}={example}");
            let found = problems
                .iter()
                .any(|problem| problem.starts_with(&expected) && problem.contains(&example));
            assert!(found, "{problems:?}");
            assert!(settings.session.trace.is_none() && settings.tensorboard.is_none());
            let expected = if name == "PROFILER_SUMMARY" {
                SummaryTarget::Stderr
            } else {
                SummaryTarget::Off
            };
            assert_eq!(settings.summary, expected);
        }
        let (settings, problems) = read(&[
            ("PROFILER_SUMMARY", "-"),
            ("PROFILER_TRACE", "off"),
            ("PROFILER_TENSORBOARD", "0"),
        ]);
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(settings.summary, SummaryTarget::Stdout);
        assert!(settings.session.trace.is_none() && settings.tensorboard.is_none());
    }

    #[test]
    fn booleans_have_several_spellings() {
        for (text, expected) in [
            ("1", true),
            ("TRUE", true),
            ("on", true),
            ("Yes", true),
            ("0", false),
            ("false", false),
            ("off", false),
            ("no", false),
        ] {
            let (settings, problems) = read(&[("PROFILER_ENABLED", text)]);
            assert_eq!((settings.enabled, problems.len()), (expected, 0), "{text}");
        }
    }

    #[test]
    fn a_value_that_is_not_valid_is_reported_and_left_at_the_default() {
        let (settings, problems) = read(&[("PROFILER_ENABLED", "perhaps"), ("PROFILER_RING", "3")]);
        assert!(settings.enabled);
        assert_eq!(settings.ring, 2048);
        assert!(problems[0].contains("PROFILER_ENABLED=perhaps") && problems[0].contains("`off`"));
        assert!(problems[1].contains("from 16 to 1048576"));
    }

    #[test]
    fn a_misspelled_variable_is_reported_with_the_right_name() {
        let (_, problems) = read(&[
            ("PROFILER_ENABLE", "0"),
            ("PROFILER_HOME", "x"),
            ("PROFILER_TENSORBOARD_DIR", "runs"),
        ]);
        let expected = [
            "PROFILER_ENABLE is not a variable of the profiler; did you mean `PROFILER_ENABLED`?",
            "PROFILER_TENSORBOARD_DIR is not a variable of the profiler; did you mean `PROFILER_TENSORBOARD`?",
        ];
        assert_eq!(problems, expected);
    }

    #[test]
    fn another_word_for_a_variable_is_reported_with_what_is_meant() {
        for (name, value, meant) in [
            ("PROFILER_DISABLED", "1", "`PROFILER_ENABLED=0`"),
            ("PROFILER_DISABLE", "true", "`PROFILER_ENABLED=0`"),
            ("PROFILER_OFF", "x", "`PROFILER_ENABLED=0`"),
            ("PROFILER_DISABLED", "0", "`PROFILER_ENABLED=1`"),
            ("PROFILER_ON", "1", "`PROFILER_ENABLED`"),
            ("PROFILER_OUTPUT", "x", "`PROFILER_SUMMARY`"),
            ("PROFILER_CUDA", "1", "`PROFILER_BACKEND`"),
            ("PROFILER_INTERVAL", "1s", "`PROFILER_SUMMARY_INTERVAL`"),
            (
                "PROFILER_GPU",
                "1",
                "`PROFILER_GPU_SAMPLES` or `PROFILER_GPU_IDLE`",
            ),
        ] {
            let (settings, problems) = read(&[(name, value)]);
            let expected =
                format!("{name} is not a variable of the profiler; did you mean {meant}?");
            assert_eq!(problems, [expected]);
            assert!(settings.enabled, "{name} is not obeyed");
        }
    }

    #[test]
    fn a_variable_like_none_of_the_profilers_is_not_reported() {
        for name in [
            "PROFILER_HOME",
            "PROFILER_TESTS_TRACES",
            "PROFILER_TEST_SOURCES",
            "PROFILER",
            "PROFILER_",
            "PROFILERS_OFF",
        ] {
            let (_, problems) = read(&[(name, "1")]);
            assert!(problems.is_empty(), "{problems:?}");
        }
    }

    #[test]
    fn a_summary_with_an_unknown_ending_goes_to_standard_error() {
        let (settings, problems) = read(&[("PROFILER_SUMMARY", "/tmp/out.xyz")]);
        // With the letter of a drive, where there are drives.
        let file = absolute("/tmp/out.xyz".as_ref());
        let beginning = format!(
            "PROFILER_SUMMARY: the summary cannot go to {}, so the table goes to standard error: `.xyz` names no format",
            file.display()
        );
        assert_eq!(settings.summary, SummaryTarget::Stderr);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with(&beginning), "{problems:?}");
    }

    #[cfg(feature = "export")]
    #[test]
    fn a_summary_for_viewers_counts_callers_unless_they_are_turned_off() {
        let callers = |variables: &[(&str, &str)]| read(variables).0.callers;
        assert!(callers(&[("PROFILER_SUMMARY", "run.prof")]));
        assert!(!callers(&[("PROFILER_SUMMARY", "run.json")]));
        let off = ("PROFILER_CALLERS", "0");
        assert!(!callers(&[("PROFILER_SUMMARY", "run.prof"), off]));
    }

    #[cfg(feature = "cuda")]
    #[test]
    fn variables_of_the_gpu_without_effect_are_reported() {
        let (_, problems) = read(&[
            ("PROFILER_BACKEND", "cpu"),
            ("PROFILER_CUDA_STREAM", "legacy"),
        ]);
        let expected = "PROFILER_CUDA_STREAM has no effect, since PROFILER_BACKEND=cpu turns GPU times off: leave one of \
                        them out";
        assert_eq!(problems, [expected]);
        let (_, problems) = read(&[("PROFILER_CUDA_STREAM", "legacy")]);
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn what_a_build_without_cuda_cannot_do_is_reported_where_it_is_required() {
        for name in ["PROFILER_KERNELS", "PROFILER_NVTX"] {
            let (_, problems) = read(&[(name, "1")]);
            let expected = format!(
                "{name} has no effect, since profiler-runtime was built without its feature `cuda`"
            );
            assert!(
                problems.len() == 1 && problems[0].starts_with(&expected),
                "{problems:?}"
            );
            let (_, problems) = read(&[(name, "auto")]);
            assert!(problems.is_empty(), "{problems:?}");
        }
    }

    #[test]
    fn a_filter_without_globs_is_reported() {
        let (settings, problems) = read(&[("PROFILER_FILTER", ",")]);
        assert!(settings.filter.is_empty());
        let expected = "PROFILER_FILTER=, is not understood: it takes globs over names, separated by commas; `-` before one \
                        excludes; the default is used: everything";
        assert_eq!(problems, [expected]);
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        let (settings, problems) = read(&[("PROFILER_ENABLED", ""), ("PROFILER_TENSORBOARD", "")]);
        assert!(settings.enabled && settings.tensorboard.is_none() && problems.is_empty());
    }

    #[test]
    fn parts_of_a_session_without_a_trace_are_reported() {
        let parts = [
            ("PROFILER_SCHEDULE", "active=1"),
            ("PROFILER_TRACE_CAPACITY", "1000"),
            ("PROFILER_STEP", "step"),
            ("PROFILER_CONTROL", "control"),
        ];
        for part in parts {
            let (_, problems) = read(&[part]);
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert!(
                problems[0].starts_with(&format!("{} is set and PROFILER_TRACE is not", part.0))
            );
            let (_, problems) = read(&[part, ("PROFILER_TRACE", "trace.json")]);
            let about_parts = problems.iter().filter(|problem| problem.contains(part.0));
            assert_eq!(about_parts.count(), 0, "{problems:?}");
        }
    }

    #[test]
    fn a_trace_that_cannot_be_written_is_reported() {
        let (_, problems) = read(&[("PROFILER_TRACE", "trace.json")]);
        if cfg!(feature = "trace") {
            assert!(problems.is_empty(), "{problems:?}");
        } else {
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert!(problems[0].contains("without its feature `trace`"));
        }
    }

    #[test]
    #[cfg(feature = "trace")]
    fn a_wrong_schedule_is_reported_by_its_wrong_part() {
        let (settings, problems) =
            read(&[("PROFILER_SCHEDULE", "wiat=1"), ("PROFILER_TRACE", "t")]);
        assert!(settings.session.schedule.is_none());
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].contains("a schedule has no `wiat`"),
            "{problems:?}"
        );
    }
}
