#!/usr/bin/env bash
# Counts the instructions of one call, bare and measured, and compares them with the committed ones; shows the code of a
# call while measuring is off.
#
#     ./instructions.sh             fails if a count is more than 2 % above cpu/expected.txt
#     ./instructions.sh --update    writes that file
#
# Callgrind counts executed instructions, here those of the calling thread. Some calls take more of them than usual: the
# times under callgrind decide which buckets of a cell are in its window, and other work on the machine makes times vary.
# So each count is that of the batch of 1,000 calls with the fewest. Counts depend on the compiler: with another one than
# the file was made with, nothing is compared, and the exit status is 77.
set -euo pipefail
cd "$(dirname "$0")"
source ./expected.sh
unset "${!PROFILER_@}"
# Without the thread that searches for a CUDA driver.
export PROFILER_BACKEND=cpu
# Room for all entries of a thread: nothing is dropped, and no call has to wait for another thread.
export PROFILER_RING=1048576
# Incremental builds inline less.
export CARGO_INCREMENTAL=0

batches=${BATCHES:-200}
for tool in valgrind objdump nm cargo; do
    command -v "$tool" >/dev/null || {
        echo "instructions.sh needs $tool; install it (Debian: apt-get install valgrind binutils)" >&2
        exit 1
    }
done

# Read the path from the output of cargo: the target folder may be anywhere.
binary=$(cargo build --release --quiet --package cpu --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -1)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# collected VARIANT: prints the instructions of one call, in the batch with the fewest.
collected() {
    local said
    rm -f "$scratch"/counts*
    said=$(valgrind --tool=callgrind --callgrind-out-file="$scratch/counts" \
        --toggle-collect='*counted_calls*' --dump-after=bench_harness::batches::counted_calls "$binary" count "$1" "$batches" 2>&1)
    # One file for each batch. The last one, written at the end of the program, has no number and counts nothing.
    if [[ $(find "$scratch" -name 'counts.*' | wc -l) != "$batches" ]]; then
        echo "callgrind did not count each batch; its output:" >&2
        echo "$said" >&2
        exit 1
    fi
    sed -n 's/^summary: //p' "$scratch"/counts.* |
        awk 'NR == 1 || $1 < fewest { fewest = $1 } END { printf "%.1f", fewest / 1000 }'
}

# per-measured-call VARIANT BASE CALLS: prints the difference; CALLS is the number of measured calls in one call.
per-measured-call() {
    awk -v with="${per_call[$1]}" -v without="${per_call[$2]}" -v calls="$3" \
        'BEGIN { printf "%.1f", (with - without) / (calls ? calls : 1) }'
}

# text FUNCTION: prints the bytes of a function of the bench and of those inside it.
text() {
    local name=$1 sum=0 size symbol
    while read -r _ size _ symbol; do
        [[ $symbol != "$name" && $symbol != "$name"::* ]] || sum=$((sum + 16#$size))
    done < <(nm --print-size --demangle "$binary" | grep -i ' t ')
    ((sum > 0)) || {
        echo "there is no symbol $name" >&2
        return 1
    }
    echo "$sum"
}

declare -A per_call
counts=()
echo "instructions of one call ($(made_with))"
printf '%-22s %12s %22s\n' variant 'with loop' 'per measured call'
while read -r variant base measured; do
    per_call[$variant]=$(collected "$variant")
    beyond=$(per-measured-call "$variant" "$base" "$measured")
    printf '%-22s %12.1f %22.1f\n' "$variant" "${per_call[$variant]}" "$beyond"
    [[ $variant == "$base" ]] || counts+=("$variant" "$beyond")
done < <("$binary" list)

measured=$(text cpu::measured::measured)
bare=$(text bench_harness::subjects::bare)
bytes=$((measured - bare))
counts+=(bytes-of-text "$bytes")
echo
echo "text of a measured function beyond the bare one: $bytes bytes"

echo
if [[ ${1-} == --update ]]; then
    update cpu/expected.txt "${counts[@]}"
    compared=0
else
    compared=0
    compare cpu/expected.txt "${counts[@]}" || compared=$?
fi

if [[ $(uname -m) != x86_64 ]]; then
    echo "the code of a call while measuring is off is checked on x86_64 only"
    exit "$compared"
fi
echo
echo "the measured function, from its entry to the decision that measuring is off"
code=$(objdump --disassemble --demangle --no-show-raw-insn "$binary" |
    awk '/^$/ { inside = 0 } inside { print } /<cpu::measured::measured>:$/ { inside = 1 }')
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
exit "$compared"
