//! Tools that are missing, refuse, or provide only some functions, and the variable `PROFILER_NVTX`.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use profiler_nvtx_recorder::{Call, FAULTS, FILE, INJECTION, Range};
use profiler_runtime::{MeasureFuture, init, measure_execution_time, summary};
use profiler_simulated_driver::Simulator;
use profiler_tests::gpu::{self, Gpu, OnDriver, Ran, driver};
use profiler_tests::nvtx::{Recorded, record, record_with};

#[measure_execution_time]
fn work() {}

fn scope_and_future() {
    work();
    let mut future = Box::pin(async { work() }.measure_execution_time("future"));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_ready());
    assert_eq!(summary().row("future").map(|row| row.calls), Some(1));
}

fn one_warning(recorded: &Recorded, part: &str) {
    let warnings = recorded.warnings();
    assert_eq!(warnings.len(), 1, "{}", recorded.stderr);
    assert!(warnings[0].contains(part), "{warnings:?}");
}

#[test(measuring)]
fn a_tool_that_refuses_gets_nothing() {
    let recorded = record("refuse", scope_and_future);
    assert_eq!(recorded.lines, []);
    one_warning(&recorded, "refuses this program");
}

#[test(measuring)]
fn a_library_that_is_missing_or_no_tool_is_reported() {
    let missing = |command: &mut Command| _ = command.env(INJECTION, "/nonexistent/tool.so");
    let recorded = record_with(missing, scope_and_future);
    assert_eq!(recorded.lines, []);
    one_warning(&recorded, "cannot be loaded");
}

#[test(measuring)]
fn a_library_without_the_function_is_reported() {
    let other = |command: &mut Command| {
        command.env(
            INJECTION,
            Simulator::built().expect("a library that is no tool"),
        );
    };
    let recorded = record_with(other, scope_and_future);
    assert_eq!(recorded.lines, []);
    one_warning(&recorded, "has no function InitializeInjectionNvtx2");
}

#[test(measuring)]
fn a_tool_without_the_module_of_ranges_gets_nothing() {
    let recorded = record("module=5", scope_and_future);
    assert_eq!(recorded.lines, []);
    one_warning(&recorded, "takes none");
}

#[test(measuring)]
fn a_tool_without_the_module_of_threads_gets_ranges() {
    let recorded = record("module=1 module=2", scope_and_future);
    let expected = ["+work", "-", ">future", "+work", "-", "<future"];
    assert_eq!(recorded.ranges(), expected);
    assert!(recorded.warnings().is_empty(), "{}", recorded.stderr);
}

#[test(measuring)]
fn a_tool_that_registers_no_strings_gets_texts() {
    let recorded = record("function=5.10 function=5.12 function=5.8", scope_and_future);
    let ranges = recorded.all(|call| match call {
        Call::Push(range) | Call::Start(_, range) => Some(range.clone()),
        _ => None,
    });
    let short = |range: &Range| (range.is_registered, range.name.clone());
    let work = (false, "nvtx::tools::work".to_owned());
    let expected = [work.clone(), (false, "future".to_owned()), work];
    assert_eq!(ranges.iter().map(short).collect::<Vec<_>>(), expected);
    assert_eq!(recorded.ranges().len(), 6);
}

#[test(measuring)]
fn a_tool_that_takes_only_one_kind_of_range_gets_that() {
    for faults in ["function=5.2", "function=5.3"] {
        let recorded = record(faults, scope_and_future);
        assert_eq!(recorded.ranges(), ["+work", "-", "+work", "-"], "{faults}");
        one_warning(&recorded, "none of futures");
    }
}

#[test(measuring)]
fn a_tool_that_pushes_or_pops_only_gets_no_ranges_of_scopes() {
    let recorded = record("function=5.5", scope_and_future);
    assert_eq!(recorded.ranges(), [">future", "<future"]);
    one_warning(&recorded, "those of futures only");
}

#[test(measuring)]
fn no_tool_is_loaded_if_the_variable_says_so() {
    let off = |command: &mut Command| _ = command.env("PROFILER_NVTX", "0");
    let recorded = record_with(off, scope_and_future);
    assert_eq!(recorded.lines, []);
    assert!(recorded.warnings().is_empty(), "{}", recorded.stderr);
}

#[test(measuring)]
fn a_missing_tool_is_reported_only_if_one_is_asked_for() {
    let asked = |command: &mut Command| _ = command.env_remove(INJECTION).env("PROFILER_NVTX", "1");
    let recorded = record_with(asked, scope_and_future);
    assert_eq!(recorded.lines, []);
    one_warning(&recorded, "is not set: start the program with one");
}

#[test(measuring)]
fn a_program_without_a_tool_gets_no_warning() {
    let unset = |command: &mut Command| _ = command.env_remove(INJECTION);
    let recorded = record_with(unset, scope_and_future);
    assert_eq!(recorded.lines, []);
    assert!(recorded.warnings().is_empty(), "{}", recorded.stderr);
}

/// Has the tool wait in what the program takes for the CUDA driver, and say so. Returns `None` where that cannot be: the folder
/// of the user `root` is one of the system, and another user may not reach the program.
fn in_driver(command: &mut Command) -> Option<PathBuf> {
    let is_file = |name: &OsStr| name == FILE;
    let file = command.get_envs().find(|(name, _)| is_file(name));
    let file = PathBuf::from(file.and_then(|(_, path)| path).expect("the file of calls"));
    let folder = file.parent().expect("a folder").to_owned();
    let advertised = folder.join("nvidia/nvtx");
    std::fs::create_dir_all(&advertised).expect("a folder");
    std::fs::write(advertised.join("nvtx-cuda.yaml"), "").expect("a file");
    let tool = profiler_nvtx_recorder::built();
    symlink(&tool, folder.join("libcuda.so.1")).expect("a link");
    let all = Permissions::from_mode(0o777);
    std::fs::set_permissions(&folder, all).expect("the folder is this test's");
    command
        .env_remove(INJECTION)
        .env("XDG_RUNTIME_DIR", &folder)
        .env("LD_LIBRARY_PATH", &folder)
        // It is no driver otherwise.
        .env("PROFILER_BACKEND", "cpu");
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|known| known.uid() == 0);
    if is_root {
        const NOBODY: u32 = 65_534;
        command.uid(NOBODY).gid(NOBODY);
    }
    let is_open = |path: &Path| {
        let mode =
            |path: &Path| std::fs::metadata(path).map_or(0, |known| known.permissions().mode());
        path.ancestors().skip(1).all(|folder| mode(folder) & 1 != 0)
    };
    let program = std::env::current_exe().expect("this program");
    (!is_root || [&program, &tool, &file].iter().all(|path| is_open(path))).then_some(folder)
}

#[test(measuring)]
fn a_tool_that_waits_in_the_driver_gets_ranges() {
    let mut is_possible = true;
    let waiting = |command: &mut Command| is_possible = in_driver(command).is_some();
    let recorded = record_with(waiting, scope_and_future);
    if !is_possible {
        eprintln!("skipped: another user cannot start this program");
        return;
    }
    let expected = ["+work", "-", ">future", "+work", "-", "<future"];
    assert_eq!(recorded.ranges(), expected);
    assert!(recorded.warnings().is_empty(), "{}", recorded.stderr);
}

#[test(measuring)]
fn no_tool_is_looked_for_in_the_driver_without_its_file_or_against_the_variable() {
    for declined in [false, true] {
        let set_up = |command: &mut Command| {
            let Some(folder) = in_driver(command) else {
                return;
            };
            if declined {
                command.env(INJECTION, "./.");
            } else {
                std::fs::remove_file(folder.join("nvidia/nvtx/nvtx-cuda.yaml"))
                    .expect("it is there");
            }
        };
        let recorded = record_with(set_up, scope_and_future);
        assert_eq!(recorded.lines, [], "{declined}");
        assert!(recorded.warnings().is_empty(), "{}", recorded.stderr);
    }
}

#[test(measuring)]
fn a_driver_without_a_tool_is_reported_only_if_one_is_asked_for() {
    for asked in [false, true] {
        let set_up = |command: &mut Command| {
            in_driver(command);
            command.env(FAULTS, "driver");
            if asked {
                command.env("PROFILER_NVTX", "1");
            }
        };
        let recorded = record_with(set_up, scope_and_future);
        assert_eq!(recorded.lines, []);
        if asked {
            // Where the file cannot be found, it is another reason.
            one_warning(&recorded, "PROFILER_NVTX asks for ranges");
        } else {
            assert!(recorded.warnings().is_empty(), "{}", recorded.stderr);
        }
    }
}

fn recorded() -> OnDriver {
    driver()
        .env(INJECTION, profiler_nvtx_recorder::built())
        .file(profiler_nvtx_recorder::FILE, "calls")
}

fn streams_are_named(ran: &Ran) {
    // The test harness writes on the same line.
    let (_, said) = ran
        .stdout
        .split_once("handles ")
        .expect("the child says them");
    let said = said.lines().next().unwrap_or_default().split(' ');
    let handles: Vec<usize> = said
        .map(|handle| handle.parse().expect("a number"))
        .collect();
    let lines = Call::read_all(&ran.file("calls"));
    let calls = lines.iter().map(|line| &line.call);
    let named: Vec<_> = calls
        .clone()
        .filter_map(|call| match call {
            Call::Stream(handle, name) => Some((*handle, name.as_str())),
            _ => None,
        })
        .collect();
    let path = lines.iter().find_map(|line| match &line.call {
        Call::Push(range) => Some(range.name.clone()),
        _ => None,
    });
    let path = path.expect("a range");
    assert!(path.ends_with("launches"));
    let expected = [format!("stream 1 ({path})"), format!("stream 2 ({path})")];
    assert_eq!(
        named,
        [(handles[0], &*expected[0]), (handles[1], &*expected[1])]
    );
    assert_eq!(calls.filter(|call| **call == Call::Pop).count(), 3);
}

#[test(on = recorded().then(streams_are_named))]
fn each_stream_is_named_once_after_the_first_scope_on_it() {
    #[measure_execution_time(stream = stream)]
    fn launches(stream: &std::sync::Arc<cudarc::driver::CudaStream>) {
        let _ = stream;
    }
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let streams = [gpu.stream(), gpu.stream()];
    for stream in [&streams[0], &streams[1], &streams[0]] {
        launches(stream);
    }
    let handles = streams
        .each_ref()
        .map(|stream| stream.cu_stream().addr().to_string());
    println!("handles {}", handles.join(" "));
    gpu::settle();
}
