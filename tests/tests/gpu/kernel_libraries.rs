//! Which CUPTI is used, if the process and the system have several.

use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use profiler_runtime::cuda::{KernelStatus, kernel_status};
use profiler_runtime::{Profile, init, scope};
use profiler_simulated_driver::Simulator;
use profiler_tests::gpu::{Gpu, OnDriver, driver};
use profiler_tests::stop;

/// Where CUPTI of the driver is, and the name that a package has given to another one.
const LIBRARIES: &str = "PROFILER_TESTS_LIBRARIES";
const RENAMED: &str = "libcupti-5d1b0e2a.so.12.4.127";

/// Has CUPTI be looked for in a folder that `fill` fills, which gets the file of the driver and that folder.
fn with_libraries(fill: impl Fn(&Path, &Path) + 'static) -> OnDriver {
    driver().set_up(move |command: &mut Command| {
        let is_path = |name: &OsStr| name == "LD_LIBRARY_PATH";
        let path = command.get_envs().find(|(name, _)| is_path(name));
        let path = path
            .and_then(|(_, value)| value)
            .expect("the driver's folder");
        let folder = std::env::split_paths(path).next().expect("it comes first");
        let environment = folder.join("environment");
        let libraries = environment.join("lib");
        std::fs::create_dir_all(&libraries).expect("a folder");
        fill(&folder.join("libcuda.so"), &libraries);
        for variable in ["CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"] {
            command.env_remove(variable);
        }
        command
            .env("VIRTUAL_ENV", environment)
            .env(LIBRARIES, libraries)
            .env_remove("PROFILER_CUPTI_LIBRARY")
            .env("PROFILER_KERNELS", "1");
    })
}

/// Records a window with one kernel. Returns how many kernels it has, and which library they come from.
fn recorded() -> (usize, String) {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    let profile = Profile::builder().start().expect("started");
    {
        let _scope = scope!("work", stream = &stream);
        gpu.spin(&stream, 1_000);
    }
    gpu.context.synchronize().expect("nothing failed");
    stop(&profile);
    let trace = profile.trace().expect("a trace");
    let found = trace
        .gpu_work()
        .filter(|work| work.scope().is_some())
        .count();
    let KernelStatus::Ready { library, .. } = kernel_status() else {
        panic!("{}", kernel_status());
    };
    (found, library)
}

fn libraries() -> PathBuf {
    std::env::var_os(LIBRARIES).expect("it is set").into()
}

/// Where Python's packages of two releases have it.
const OF_12: &str = "python3.11/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12";
const OF_13: &str = "python3.11/site-packages/nvidia/cu13/lib/libcupti.so.13";

/// The driver's CUPTI under the names of both.
fn of_both_releases() -> OnDriver {
    with_libraries(move |library, folder| {
        for name in [OF_12, OF_13] {
            let file = folder.join(name);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            symlink(library, file).expect("a link");
        }
    })
}

#[test(on = of_both_releases())]
fn the_release_of_the_driver_comes_first() {
    let library = libraries().join(OF_13);
    assert_eq!(recorded(), (1, library.display().to_string()));
}

#[test(on = of_both_releases().installed(|of| of.driver_version(12_080)))]
fn an_older_driver_has_its_own_release() {
    let library = libraries().join(OF_12);
    assert_eq!(recorded(), (1, library.display().to_string()));
}

#[test(on = of_both_releases().script("fault cuptiSubscribe nth 1 return 15"))]
fn after_a_library_that_refuses_to_be_subscribed_the_next_one_is_tried() {
    let library = libraries().join(OF_12);
    assert_eq!(recorded(), (1, library.display().to_string()));
}

/// A library that was cut off, in the environment or where the loader looks first, and the driver's.
fn cut_off() -> OnDriver {
    let cut_off = |is_on_path: bool| {
        with_libraries(move |library, folder| {
            let whole = std::fs::read(library).expect("it can be read");
            let cut = &whole[..whole.len() / 2];
            let of_loader = library.parent().expect("a folder");
            let place = if is_on_path { of_loader } else { folder };
            std::fs::write(place.join("libcupti.so.13"), cut).expect("it can be written");
            symlink(library, folder.join("libcupti.so.12")).expect("a link");
        })
    };
    cut_off(false).and(cut_off(true))
}

#[test(on = cut_off())]
fn a_library_that_was_cut_off_is_not_loaded() {
    let library = libraries().join("libcupti.so.12");
    assert_eq!(recorded(), (1, library.display().to_string()));
}

/// The driver's CUPTI, and a copy that only the program loads, as a package with libraries of its own does.
fn renamed() -> OnDriver {
    with_libraries(|library, folder| {
        symlink(library, folder.join("libcupti.so.13")).expect("a link");
        std::fs::copy(library, folder.join(RENAMED)).expect("a copy");
    })
}

#[test(on = renamed().keeps_events())]
fn the_library_that_the_program_has_loaded_is_used_whatever_its_name() {
    let library = libraries().join(RENAMED);
    let _loaded = Simulator::open(&library).expect("it loads");
    let (_, used) = recorded();
    assert_eq!(used, format!("{} of the program", library.display()));
}
