#!/usr/bin/env bash
# Counts the instructions of one call with a GPU time, separately for the driver and all other code, and compares the
# latter with the committed ones.
#
#     ./gpu-instructions.sh             fails if a count is more than 2 % above gpu/expected.txt
#     ./gpu-instructions.sh --update    writes that file
#
# Callgrind attributes each instruction to a library; those of other libraries that the driver calls are the driver's.
# Each count is the difference between N and 2N calls, so
# that one-time work cancels out. Only the number of times that the resolver runs depends on the clock. With another
# compiler than the file was made with, nothing is compared, and the exit status is 77.
set -euo pipefail
cd "$(dirname "$0")"
source ./expected.sh
unset "${!PROFILER_@}"

# Incremental builds inline less.
export CARGO_INCREMENTAL=0

calls=${CALLS:-3600} # a multiple of the 900 calls of a batch
for tool in valgrind cargo; do
    command -v "$tool" >/dev/null || {
        echo "gpu-instructions.sh needs $tool; install it (Debian: apt-get install valgrind)" >&2
        exit 1
    }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

binary=$(cargo build --release --quiet --package gpu --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -1)

# collected VARIANT CALLS: prints the instructions of these calls, in the driver and elsewhere.
collected() {
    local said
    rm -f "$scratch"/*.out
    said=$(valgrind --tool=callgrind --trace-children=yes --callgrind-out-file="$scratch/%p.out" \
        --toggle-collect='*counted_calls*' "$binary" count "$1" "$2" 2>&1) || {
        echo "$said" >&2
        exit 1
    }
    awk '
        function is_driver(object) { return name[object] ~ /simulated_driver|libcuda/ }
        # A name is only written at its first use.
        /^c?ob=/ {
            split($0, part, "=")
            number = part[2]; sub(/\).*/, ")", number)
            if (part[2] ~ /\) /) name[number] = substr(part[2], index(part[2], " ") + 1)
            if (/^ob=/) object = number; else callee = number
            next
        }
        # The next line is the inclusive cost of the callee, which is counted with the callee. No other library calls the
        # driver, so all of the cost is that of the library.
        /^calls=/ {
            getline
            if (callee != "") called[object, callee] += $2
            callee = ""
            next
        }
        /^[0-9+*-]/ { own[object] += $2 }
        END {
            for (object in own)
                if (is_driver(object)) driver += own[object]
                else rest += own[object]
            for (pair in called) {
                split(pair, part, SUBSEP)
                if (is_driver(part[1]) && !is_driver(part[2])) {
                    driver += called[pair]
                    rest -= called[pair]
                }
            }
            print driver + 0, rest + 0
        }' "$scratch"/*.out
}

counts=()
echo "instructions of one measured call ($(made_with))"
printf '%-24s %14s %12s\n' variant 'in the driver' elsewhere
for variant in bare records records-queries records-queries-twice \
    stream borrowed current default attribute attribute-current nested no-context off; do
    once=$(collected "$variant" "$calls")
    twice=$(collected "$variant" $((2 * calls)))
    counted=$(awk -v a="$once" -v b="$twice" -v n="$calls" 'BEGIN {
        split(a, once); split(b, twice)
        printf "%.1f %.1f", (twice[1] - once[1]) / n, (twice[2] - once[2]) / n
    }')
    printf '%-24s %14s %12s\n' "$variant" "${counted% *}" "${counted#* }"
    case $variant in
    bare | records*) ;;
    *) counts+=("$variant" "${counted#* }") ;;
    esac
done

echo
if [[ ${1-} == --update ]]; then
    update gpu/expected.txt "${counts[@]}"
else
    compare gpu/expected.txt "${counts[@]}"
fi
