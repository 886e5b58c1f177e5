//! The table of all `PROFILER_*` variables.

/// An environment variable. The profiler reads all of them once, when it is first used.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// The name.
    pub name: &'static str,
    /// The values that it takes.
    pub takes: &'static str,
    /// The default.
    pub default: &'static str,
    /// The effect.
    pub meaning: &'static str,
    /// `true` if the value may be the path of a file or a folder. A process with raised privileges ignores such a value:
    /// the user who starts a set-user-ID program must not choose what it loads, reads or overwrites.
    pub names_path: bool,
}

/// All variables. A test compares this table with the one in `docs/environment.md`.
pub const VARIABLES: [Variable; 28] = [
    Variable {
        name: "PROFILER_ENABLED",
        takes: "`1`, `true`, `on`, `yes` or `0`, `false`, `off`, `no`",
        default: "`1`",
        meaning: "Turns measuring on or off. `set_enabled` changes it at run time. Off to the end, it leaves the outputs of the other variables and of `builder()` unwritten, and a warning says so.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_FILTER",
        takes: "globs over names, separated by commas; `-` before one excludes",
        default: "everything",
        meaning: "Selects the names to measure: those that match a glob and no exclusion. If only exclusions are given, all other names are measured. `*` matches any characters, `?` matches one.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_CALLERS",
        takes: "`1`, `true`, `on`, `yes` or `0`, `false`, `off`, `no`",
        default: "`0`",
        meaning: "Counts the calls of each path of callers: for `call_tree`, `callers` and `callees` of the summary, and for files that show stacks. All calls then take the slow path, which costs some 100 ns more.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_SUMMARY",
        takes: "`stderr`, `stdout`, `off` or a file",
        default: "`off`",
        meaning: "Writes the table there when the program ends; `1`, `true`, `on` and `yes` mean `stderr`, and `-` means `stdout`. The ending of a file's name selects its format: `.html` (a page), `.json`, `.csv`, `.prof` (pstats, SnakeViz), `.pb.gz` (pprof), `.folded` (flame graphs), `.prom` (Prometheus); `.txt`, `.log` or none for the table. The page and the formats of viewers count callers unless PROFILER_CALLERS is `0`; `.prof` and `.folded` write GPU times beside the file, to `.cuda.prof` and `.cuda.folded`. A file with another ending is refused, and the table goes to standard error. The file's name gets the rank if a launcher set one, and the process id if the file is not to be replaced (see below), or if another process, or another copy of the profiler in this one, has written it since this process began. If the file cannot be written, the table goes to standard error.",
        names_path: true,
    },
    Variable {
        name: "PROFILER_SUMMARY_INTERVAL",
        takes: "a time from 0.1 to 86400 seconds: `5`, `500ms`, `2s`, `1min`, `1h`",
        default: "none",
        meaning: "Rewrites the file of PROFILER_SUMMARY this often while the program runs, for `profiler top FILE` or a collector of metrics. The file is always whole, unless no other file may be created in its folder: then it is written in place. A write that takes long is followed by a pause of nineteen times that time. Streams and pipes get the summary at the end only.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_TENSORBOARD",
        takes: "a folder",
        default: "none",
        meaning: "Logs each call of a name without a `log` of its own to a TensorBoard log in this folder, or in `FOLDER_2` and so on if it has the log of another process: TensorBoard then shows a run for each. The tag of `app::Trainer::forward` is `Trainer/forward/cuda_ms` if it has GPU times, else `Trainer/forward/cpu_ms`.",
        names_path: true,
    },
    Variable {
        name: "PROFILER_MAX_NAMES",
        takes: "a number from 1 to 60000",
        default: "`4096`",
        meaning: "The number of names that may be built at run time. Calls of further names are counted under `(other names)`.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_CELL_MEMORY",
        takes: "a size from 4 KiB to 1 TiB: `64M`, `512MiB`, `1G`, or a number of bytes",
        default: "`512MiB`",
        meaning: "The memory that the statistics of all names on all threads may take: some 650 bytes for each name on each thread that calls it, and 31 KiB in stock. Beyond it, threads that call a name for the first time share the statistics of the name, which are as exact; each such call takes locks, and each such name 6 KiB more. The summary says so.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_RING",
        takes: "a number from 16 to 1048576",
        default: "`2048`",
        meaning: "The capacity of each thread's rings: this many log entries (about 100 bytes each) until they are collected, this many GPU times (about 300 bytes each), and eight times as many scopes while a session records (about 80 bytes each). Entries that do not fit are dropped and counted.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_BACKEND",
        takes: "`auto`, `cuda` or `cpu`",
        default: "`auto`",
        meaning: "The times to measure. `auto`: GPU times too if the program uses CUDA. `cuda`: as `auto`, but without a device `init` fails, and a program that does not call `init` gets a warning. `cpu`: no GPU times.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_THREAD_TIME",
        takes: "`1`, `true`, `on`, `yes` or `0`, `false`, `off`, `no`",
        default: "`0`",
        meaning: "Measures the thread time of each call beside its elapsed time: how long its thread ran on a processor. Costs two system calls for each call.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_CUDA_LIBRARY",
        takes: "the path of a CUDA driver library",
        default: "the library that the program has loaded, else the system's",
        meaning: "The driver library that GPU times come from. The first measured call loads it.",
        names_path: true,
    },
    Variable {
        name: "PROFILER_CUDA_EVENTS",
        takes: "a number from 1 to 1048576",
        default: "`4096`",
        meaning: "The number of scopes of one CUDA context that may wait for the device at once (two events each). Further scopes have no GPU time and are counted.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_CUDA_STREAM",
        takes: "`none`, `legacy`, `per-thread`, `libtorch` or `libtorch-or-legacy`",
        default: "`none`",
        meaning: "The stream to measure on if neither the call, its thread nor `cuda::set_default_stream` names one. `none`: such calls have no GPU time. `legacy`: the legacy default stream of the current context. It waits for all blocking streams and they wait for it, so independent streams slow down and their captures fail. `per-thread`: the thread's own default stream, for programs that launch there. `libtorch`: the stream on which libtorch launches for the thread, for `tch`; it is refused if it is the legacy default stream, as libtorch has it at first. `libtorch-or-legacy`: also that one.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_GPU_SAMPLES",
        takes: "`off`, or a time from 0.1 to 86400 seconds: `1`, `500ms`, `2s`",
        default: "`off`",
        meaning: "Reads the sensors of the GPUs this often, as `nvidia-smi` does (feature `cuda`): load, memory, power, energy, temperature, clocks and what holds them back. A background thread calls NVML; `1s` is a good choice. `off` applies to sessions too.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_GPU_IDLE",
        takes: "`1`, `true`, `on`, `yes` or `0`, `false`, `off`, `no`",
        default: "`1`",
        meaning: "Finds out which functions keep the GPUs waiting, for the summary: a background thread samples what each thread does 25 times a second once there are GPU times, and each GPU time is placed on the time line by one more call of the driver, on a thread of the profiler. Measured calls do nothing for it.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_NVML_LIBRARY",
        takes: "the path of an NVML library",
        default: "the system's `libnvidia-ml.so.1` or `nvml.dll`",
        meaning: "The library that PROFILER_GPU_SAMPLES reads the sensors with.",
        names_path: true,
    },
    Variable {
        name: "PROFILER_KERNELS",
        takes: "`auto`, or `1`, `true`, `on`, `yes` or `0`, `false`, `off`, `no`",
        default: "what the session's `kernels` says, else `auto`",
        meaning: "Records kernels, copies, fills and waits by name in the windows of sessions with `Activity::Cuda`, through CUPTI (feature `cuda`). `auto`: if the library is found and no other tool uses it. `1`: also, and a warning says why if that is not possible. Nothing of CUPTI is used while no session records.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_CUPTI_LIBRARY",
        takes: "the path of a CUPTI library",
        default: "the library that the program has loaded, else that of the system, of a toolkit (CUDA_HOME, CUDA_PATH, /usr/local/cuda*) or of Python's packages (VIRTUAL_ENV, CONDA_PREFIX, the `python3` on PATH)",
        meaning: "The library that records kernels. A session loads it when it begins to record in a program that uses CUDA.",
        names_path: true,
    },
    Variable {
        name: "PROFILER_NVTX",
        takes: "`auto`, or `1`, `true`, `on`, `yes` or `0`, `false`, `off`, `no`",
        default: "`auto`",
        meaning: "Gives calls as ranges to a tool that understands NVTX, such as Nsight Systems (feature `cuda`). `auto`: if a tool is there, which is if NVTX_INJECTION64_PATH is set, as `nsys` and `ncu` do, or a tool says in `nvtx-cuda.yaml` that it waits in the CUDA driver (NVTX 3.7). `1`: as `auto`, with a warning if there is no tool. `0`: never.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_TRACE",
        takes: "a file ending in `.json`, `.json.gz`, `.pftrace` or `.pftrace.gz`, or a folder",
        default: "none",
        meaning: "Records the whole run, or the windows of PROFILER_SCHEDULE, as traces. With `PROFILER_ENABLED=0` the recording and its steps begin when the program turns measuring on. A folder gets files for TensorBoard's trace plugin (launches have the category `Runtime`); a file ending in `.json` or `.json.gz` is written for Perfetto and HTA (`cuda_runtime`), one ending in `.pftrace` or `.pftrace.gz` for Perfetto alone, in a fraction of the size. A file name gets a number from the second trace on; the rank if RANK, OMPI_COMM_WORLD_RANK, PMI_RANK, PMIX_RANK or SLURM_PROCID holds a whole number; and the process id if the file is not to be replaced (see below), or if another process has written it in the meantime.",
        names_path: true,
    },
    Variable {
        name: "PROFILER_TRACE_CAPACITY",
        takes: "a number from 1000 to 1000000000",
        default: "`1000000`",
        meaning: "The number of scopes that one trace of PROFILER_TRACE holds. A scope takes about 100 bytes of memory until the trace is written, one with a GPU time about 200. At the end of the program, a warning says how many scopes came after a trace was full.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_SCHEDULE",
        takes: "`wait=1,warmup=1,active=3,repeat=2,skip_first=0,skip_first_wait=0`, any of them",
        default: "one window from start to end",
        meaning: "The steps that PROFILER_TRACE records, counted as in `torch.profiler.schedule`. With `skip_first_wait=1`, the first cycle has no `wait`. A step is a call of `step()`, or of the name in PROFILER_STEP.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_STEP",
        takes: "a name",
        default: "none",
        meaning: "The name whose calls are the steps of PROFILER_SCHEDULE. A step ends when such a call returns. Recursive calls do not count.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_SIGNALS",
        takes: "`1`, `true`, `on`, `yes` or `0`, `false`, `off`, `no`",
        default: "`1`",
        meaning: "Writes the outputs that were asked for before Ctrl-C (SIGINT), SIGTERM or SIGHUP ends the program, within two seconds; a second signal ends it at once. Signals that the program handles or ignores are left to it. `0` leaves all signals alone. Unix only, without macOS.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_ANONYMOUS",
        takes: "`1`, `true`, `on`, `yes` or `0`, `false`, `off`, `no`",
        default: "`0`",
        meaning: "Leaves the name of the machine and the values of the variables out of everything that is written. The guide's page on files says what else is in them.",
        names_path: false,
    },
    Variable {
        name: "PROFILER_CONTROL",
        takes: "a file, which need not exist",
        default: "none",
        meaning: "Starts and stops the recording of PROFILER_TRACE while the program runs: write `start` or `stop` to the file. The profiler checks the file five times a second and records nothing before the first `start`. It must be a regular file of the user or of root; at most 64 bytes of it are read. A file of another user is not read, and a warning says so.",
        names_path: true,
    },
    Variable {
        name: "PROFILER_SIGNAL",
        takes: "`USR1`, `USR2` or `HUP`",
        default: "none",
        meaning: "Starts and stops the recording of PROFILER_TRACE by a signal: the first signal starts it, the next one stops it, and so on. Unix only.",
        names_path: false,
    },
];
