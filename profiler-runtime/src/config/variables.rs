//! Every `PROFILER_*` variable, in one table.

/// A variable that the profiler reads, once, when it is first used.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub takes: &'static str,
    /// What holds where it is not set.
    pub default: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// Whether its value may name a file or a folder. With raised privileges such a value is ignored: whoever starts a
    /// set-user-ID program must not choose what it loads, reads or overwrites.
    pub names_path: bool,
}

/// All of them; `docs/environment.md` shows the same table, and a test holds them together.
pub const VARIABLES: [Variable; 15] = [
    Variable {
        name: "PROFILER_ENABLED",
        takes: "`1`, `true`, `on`, `yes` or `0`, `false`, `off`, `no`",
        default: "`1`",
        meaning: "Whether calls are measured. `set_enabled` turns it at run time.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_FILTER",
        takes: "globs over names, separated by commas; `-` before one excludes",
        default: "everything",
        meaning: "Which names are measured: those that match a glob (all, where only exclusions are given) and no exclusion. `*` stands for any characters, `?` for one.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_SUMMARY",
        takes: "`stderr`, `stdout`, `off` or a file",
        default: "`off`",
        meaning: "Where the table goes at the end of the program. A file ending in `.json` or `.csv` gets that format.",
        names_path: true,
    },
    Variable {
        name: "PROFILER_TENSORBOARD",
        takes: "a folder",
        default: "none",
        meaning: "Writes each call of a name without a `log` of its own to a TensorBoard log there (feature `tensorboard`).",
        names_path: true,
    },
    Variable {
        name: "PROFILER_MAX_NAMES",
        takes: "a number from 1 to 60000",
        default: "`4096`",
        meaning: "How many names may be built at run time; what goes over is counted under `(other names)`.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_RING",
        takes: "a number from 16 to 1048576",
        default: "`2048`",
        meaning: "How many log entries each thread that logs holds until they are collected (about 100 bytes each), how many GPU times each thread that measures them (about 300 bytes each), and eight times as many scopes each thread that a session records (about 80 bytes each). What goes over is dropped and counted.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_BACKEND",
        takes: "`auto`, `cuda` or `cpu`",
        default: "`auto`",
        meaning: "What takes the times. `auto`: the GPU too, where the program uses CUDA. `cuda`: the same, but without a device `init` fails, and a program that does not call it is warned. `cpu`: no GPU times.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_CUDA_LIBRARY",
        takes: "the path of a CUDA driver library",
        default: "the one that the program has loaded, else the system's",
        meaning: "The driver that GPU times are taken from; it is loaded with the first measured call.",
        names_path: true,
    },
    Variable {
        name: "PROFILER_CUDA_EVENTS",
        takes: "a number from 1 to 1048576",
        default: "`4096`",
        meaning: "How many scopes of one CUDA context may wait for the device at once (two events each). What goes over has no GPU time, and is counted.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_CUDA_STREAM",
        takes: "`none`, `legacy` or `per-thread`",
        default: "`none`",
        meaning: "Which default stream of CUDA takes the GPU times of calls for which neither they, nor their thread, nor `cuda::set_default_stream` name a stream. `none`: they have no GPU time. `legacy`: that of the current context, which waits for all blocking streams, and they for it: independent streams are slowed down, and their captures fail. `per-thread`: the thread's own, for programs that launch there.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_TRACE",
        takes: "a file ending in `.json` or `.json.gz`, or a folder",
        default: "none",
        meaning: "Records the run, or the windows that PROFILER_SCHEDULE says, and writes them as traces: to the file (from the second one on with a number in its name; with its rank where RANK, OMPI_COMM_WORLD_RANK, PMI_RANK, PMIX_RANK or SLURM_PROCID says it, as a whole number; with the process's number where another process has written the file meanwhile), or to the folder as TensorBoard's trace plugin and HTA look for them.",
        names_path: true,
    },
    Variable {
        name: "PROFILER_SCHEDULE",
        takes: "`wait=1,warmup=1,active=3,repeat=2,skip_first=0`, any of them",
        default: "one window from start to end",
        meaning: "Which steps PROFILER_TRACE records, as `torch.profiler.schedule` counts them. A step is a call of `step()`, or of the name that PROFILER_STEP says.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_STEP",
        takes: "a name",
        default: "none",
        meaning: "The name whose calls are the steps of PROFILER_SCHEDULE: when one returns, a step ends. Calls inside of another call of the name do not count.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_CONTROL",
        takes: "a file, which need not be there",
        default: "none",
        meaning: "Starts and stops the recording of PROFILER_TRACE in a running program: `start` or `stop` written to the file. It is looked at five times a second, and nothing is recorded before the first `start`. Only a regular file is read, and 64 bytes of it at most.",
        names_path: true,
    },
    Variable {
        name: "PROFILER_SIGNAL",
        takes: "`USR1`, `USR2` or `HUP`",
        default: "none",
        meaning: "The same by a signal: the first one starts the recording, the next one stops it, and so on. Unix only.",
        names_path: false,
    },
];
