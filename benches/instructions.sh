#!/usr/bin/env bash
# Counts the instructions of one call, bare and measured, and shows the code of a call while measuring is off.
#
# The counts do not depend on the clock: callgrind counts executed instructions. Each count is the difference
# between N and 2N calls, so that one-time work cancels out.
set -euo pipefail
cd "$(dirname "$0")"
# With CUDA, calls take a slower path while the profiler searches for a driver, in the first two seconds.
export PROFILER_BACKEND=cpu
# Incremental builds inline less.
export CARGO_INCREMENTAL=0

calls=${CALLS:-20000}
for tool in valgrind objdump cargo; do
    command -v "$tool" >/dev/null || {
        echo "instructions.sh needs $tool; install it (Debian: apt-get install valgrind binutils)" >&2
        exit 1
    }
done

# Read the path from the output of cargo: the target folder may be anywhere.
binary=$(cargo build --release --quiet --package instructions --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -1)

# collected VARIANT CALLS: prints the instructions of these calls.
collected() {
    local said
    said=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        --toggle-collect='*counted_calls*' "$binary" "$1" "$2" 2>&1)
    sed -n 's/.*Collected : *\([0-9]*\).*/\1/p' <<<"$said" | grep . || {
        echo "callgrind counted nothing; its output:" >&2
        echo "$said" >&2
        exit 1
    }
}

declare -A per_call
for variant in bare bare-nested off on on-nested filtered-out; do
    once=$(collected "$variant" "$calls")
    twice=$(collected "$variant" $((2 * calls)))
    per_call[$variant]=$(awk -v a="$once" -v b="$twice" -v n="$calls" 'BEGIN { printf "%.1f", (b - a) / n }')
done

# row VARIANT BASELINE CALLS: prints a row; CALLS is the number of measured calls in one call.
row() {
    awk -v name="$1" -v with="${per_call[$1]}" -v without="${per_call[$2]}" -v calls="$3" 'BEGIN {
        printf "%-14s %12.1f %22.1f\n", name, with, (with - without) / calls
    }'
}

echo "instructions of one call ($(rustc --version), $(uname -m))"
printf '%-14s %12s %22s\n' variant 'with loop' 'per measured call'
row bare bare 1
row off bare 1
row filtered-out bare 1
row on bare 1
row on-nested bare-nested 2

if [[ $(uname -m) != x86_64 ]]; then
    echo "the code of a call while measuring is off is checked on x86_64 only"
    exit
fi
echo
echo "the measured function, from its entry to the decision that measuring is off"
code=$(objdump --disassemble --demangle --no-show-raw-insn "$binary" |
    awk '/^$/ { inside = 0 } inside { print } /<instructions::measured>:$/ { inside = 1 }')
# Up to the first conditional jump: all of this runs before the decision.
entry=$(cut -f2- <<<"$code" | awk '{ print } /^j/ { exit }')
echo "$entry"

# The switch has 32 bits; its address, 64. In position-independent code, the address of a static in another
# crate is loaded from the global offset table.
count() {
    grep -cE "$1" <<<"$entry" || true
}
switches=$(count '^(mov +[^%]*\(%r[a-z0-9]+\),%(e|r[0-9]+d)|(test|cmp|bt)[bl]? .*\(%r)')
addresses=$(count '^mov +[^%]*\(%rip\),%r')
branches=$(count '^j')
calls_made=$(count '^call')
echo
echo "before the decision: $switches load of the switch ($addresses load of its address)," \
    "$branches branch, $calls_made calls"
if [[ $switches != 1 || $branches != 1 || $calls_made != 0 ]]; then
    echo "a call while measuring is off should be one load and one branch; see the code above" >&2
    exit 1
fi
