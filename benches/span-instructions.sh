#!/usr/bin/env bash
# Counts the instructions of one span of `tracing` under each of several layers.
#
# A span is created, entered, exited and closed. Each count is the difference between N and 2N spans, so that one-time
# work cancels out. The layer that does nothing shows what the registry takes; other threads are not counted.
#
# The profiler's own functions are counted once more alone: the rest beyond the registry is what `tracing-subscriber` does
# for a layer with a filter. Exits with an error if they take more than LIMIT instructions.
set -euo pipefail
cd "$(dirname "$0")"
# Without the thread that searches for a CUDA driver.
export PROFILER_BACKEND=cpu
# Incremental builds inline less.
export CARGO_INCREMENTAL=0

spans=${SPANS:-5000}
limit=${LIMIT:-300}
command -v valgrind >/dev/null || {
    echo "span-instructions.sh needs valgrind; install it (Debian: apt-get install valgrind)" >&2
    exit 1
}

binary=$(cargo build --release --quiet --package cpu --example spans --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -1)

# collected VARIANT SPANS FUNCTIONS: prints the instructions of these functions.
collected() {
    local said
    said=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        --toggle-collect="$3" "$binary" "$1" "$2" 2>&1)
    sed -n 's/.*Collected : *\([0-9]*\).*/\1/p' <<<"$said" | grep . || {
        echo "callgrind counted nothing; its output:" >&2
        echo "$said" >&2
        exit 1
    }
}

echo "instructions of one span ($(rustc --version), $(uname -m))"
printf '%-16s %12s %22s\n' layer 'with registry' 'beyond the registry'
declare -A per_span
for layer in nothing profiler-off profiler profiler-whole timing flame chrome opentelemetry; do
    once=$(collected "$layer" "$spans" '*counted_spans*')
    twice=$(collected "$layer" $((2 * spans)) '*counted_spans*')
    per_span[$layer]=$(awk -v a="$once" -v b="$twice" -v n="$spans" 'BEGIN { printf "%.1f", (b - a) / n }')
    awk -v name="$layer" -v with="${per_span[$layer]}" -v without="${per_span[nothing]}" \
        'BEGIN { printf "%-16s %12.1f %22.1f\n", name, with, with - without }'
done

own=$(for count in "$spans" $((2 * spans)); do
    collected profiler "$count" 'profiler_runtime::tracing_layer::recorder::Recorder::*'
done | awk -v n="$spans" 'NR == 1 { once = $1 } END { printf "%.1f", ($1 - once) / n }')
echo
echo "the profiler's own functions: $own instructions"
if awk -v own="$own" -v limit="$limit" 'BEGIN { exit !(own > limit) }'; then
    echo "they should take at most $limit" >&2
    exit 1
fi
