#!/bin/sh
# How often does `profiler diff` report a change where there is none, and miss one that was planted?
#
#     checks/false_alarms.sh [TRIES] [RUNS]
#
# Compares a program of ten functions with itself, and with a version in which one function does 10 % more work. The runs
# of both take turns. Make the machine busy while it runs: that is the question. 20 tries of 7 runs each take some minutes.
set -eu
cd "$(dirname "$0")/.."
tries=${1:-20}
runs=${2:-7}
cargo build --quiet --release -p profiler-runtime-cli --bin profiler
cargo build --quiet --release -p profiler-examples --example planted_change
target=${CARGO_TARGET_DIR:-target}/release
program=$target/examples/planted_change
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Prints the functions with a finding, one on a line, of one comparison.
findings() {
    "$target/profiler" run -n "$runs" -o "$folder/$1" --vs "$program" -- "$program" "$2" >/dev/null
    "$target/profiler" diff --format json --base "$folder/$1/base" --new "$folder/$1/new" >"$folder/$1.json" || true
    python3 -c '
import json, sys
diff = json.load(open(sys.argv[1]))
for row in diff["overall"] + diff["rows"]:
    if row["verdict"] in ("slower", "faster"):
        change = row.get("against_others") or row["change"]
        print("{} {} {:+.1%}".format(row["name"], row["verdict"], change["estimate"]))
' "$folder/$1.json"
}

silent=0
exact=0
for try in $(seq "$tries"); do
    found=$(findings "same-$try" 0)
    if [ -z "$found" ]; then
        silent=$((silent + 1))
    else
        echo "try $try, with itself: $found"
    fi
    found=$(findings "planted-$try" 10)
    case $found in
    *"
"*) echo "try $try, 10 % planted: $found" ;;
    "planted_change::mix slower "*) exact=$((exact + 1)) ;;
    *)
        echo "try $try, 10 % planted: ${found:-nothing}"
        "$target/profiler" diff --all --base "$folder/planted-$try/base" --new "$folder/planted-$try/new" | grep mix
        ;;
    esac
done
echo "with itself: nothing reported in $silent of $tries tries"
echo "10 % planted: it alone reported in $exact of $tries tries"
