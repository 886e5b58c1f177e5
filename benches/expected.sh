# Compares counts with those of a committed file. Sourced by the scripts that count.
#
# A file begins with the compiler and the system that it was made with: other compilers make other instructions. Then
# there is one line for each count: its name and its value.

# The exit status if the counts cannot be compared.
readonly not_compared=77

# Counts that are further above than this fail, and so that rounding does not, than one instruction.
readonly tolerance=0.02

made_with() {
    echo "$(rustc --version), $(uname -sm)"
}

# update FILE NAME VALUE…: writes the counts.
update() {
    local file=$1
    shift
    {
        echo "# Written by $(basename "$0") --update, with"
        echo "# $(made_with)"
        printf '%s %s\n' "$@"
    } >"$file"
    echo "written: $file"
}

# compare FILE NAME VALUE…: prints the counts next to those of the file. Fails if one is too high, missing or not in the
# file.
compare() {
    local file=$1 made
    shift
    made=$(sed -n '2s/^# //p' "$file")
    if [[ $made != "$(made_with)" ]]; then
        echo "not compared: $file is for $made; this is $(made_with)"
        return "$not_compared"
    fi
    printf '%s %s\n' "$@" | awk -v file="$file" -v script="./$(basename "$0")" -v tolerance="$tolerance" '
        BEGIN {
            while ((getline line < file) > 0)
                if (line !~ /^#/ && split(line, part, " ") == 2) expected[part[1]] = part[2]
            printf "%-22s %10s %10s %9s\n", "compared", "counted", "expected", "change"
        }
        {
            name = $1; counted = $2
            if (!(name in expected)) { printf "%-22s %10.1f %10s\n", name, counted, "-"; unknown++; next }
            change = counted - expected[name]
            share = expected[name] ? change / expected[name] : 0
            far = change > 1 || change < -1
            verdict = ""
            if (far && (share > tolerance || !expected[name])) { verdict = "  TOO HIGH"; higher++ }
            if (far && share < -tolerance) { verdict = "  lower"; lower++ }
            printf "%-22s %10.1f %10.1f %+8.1f%%%s\n", name, counted, expected[name], 100 * share, verdict
            delete expected[name]
        }
        END {
            for (name in expected) { print name " is in " file " and was not counted"; unknown++ }
            if (higher) print higher " above the committed counts by more than " 100 * tolerance " %"
            if (lower) print lower " below them by more than " 100 * tolerance " %: commit the new counts"
            if (unknown) print unknown " without their counterpart"
            if (higher || lower || unknown) print "the counts are updated by: " script " --update"
            exit(higher || unknown)
        }'
}
