#!/bin/sh
# A function that is slow once in 100,000 calls, at random, on one of four threads: attached with
# --slower-than, mtui catches that call and no other, every time. Two runs, ten with MTUI_LONG=1. What is
# slow is known from the program's own clock (tests/slow_target.c).
set -u
cd "$(dirname "$0")/.." || exit 1
: "${MTUI_BUILD:=$PWD/build/release}"
mtui=$MTUI_BUILD/mtui
tool=$MTUI_BUILD/tests/slow_target
tmp=$(mktemp -d) || exit 1
passed=0 failed=0 target=''
slow_ms=1000 limit_ms=600
stalls=0 # calls that the machine interrupted for so long: slow too, and not the one that is looked for

clean() {
    [ -z "$target" ] || kill -9 "$target" 2>/dev/null
    rm -rf "$tmp"
}
trap clean EXIT
trap 'exit 1' INT TERM

check() { # NAME COMMAND...
    name=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: run $run: $name"
        sed 's/^/    stderr: /' "$tmp/err"
        sed 's/^/    program: /' "$tmp/program"
        cat "$tmp/rec/hits.tsv" 2>/dev/null
    fi
}

if ! "$mtui" doctor 2>/dev/null | grep -q '^uprobes *present'; then
    echo "SKIPPED: uprobes are not permitted"
    echo '0 passed, 0 failed, 1 skipped'
    exit 0
fi
if ! perf record -q -e cpu-clock -o "$tmp/try.data" true >/dev/null 2>&1; then
    echo "SKIPPED: perf does not record here"
    echo '0 passed, 0 failed, 1 skipped'
    exit 0
fi

# Whether what was caught is a call that was not meant to be slow, and yet was, as the program says.
stalled() {
    number=$(awk -F'\t' '$8 == 1 && $6 == 0 {print $5}' "$tmp/rec/hits.tsv")
    [ -n "$number" ] && grep -q "^slow $(printf '%d' "0x$number") " "$tmp/program"
}

# One recording of a new program.
attempt() { # OPTIONS...
    rm -rf "$tmp/rec" "$tmp/in"
    mkfifo "$tmp/in"
    "$tool" $slow_ms "$run$$" <"$tmp/in" >"$tmp/program" &
    target=$!
    exec 7>"$tmp/in"
    "$mtui" attach -p $target -r sample -t handle --slower-than ${limit_ms}ms --force --duration 60s \
        --batch --json -o "$tmp/rec" "$@" >"$tmp/out" 2>"$tmp/err" 7>&- </dev/null
    status=$?
    exec 7>&-
    wait $target
    target=''
}

# Nanoseconds of the call that the chosen lines of its thread cover.
within() { # FILE START-COLUMN END-COLUMN CHOSEN
    awk -F'\t' -v tid="$tid" -v from=$((end - ns)) -v to="$end" -v s="$2" -v e="$3" '
        $1 == tid && ('"$4"') {
            a = $s > from ? $s : from; b = $e < to ? $e : to
            if (b > a) sum += b - a
        }
        END {printf "%d", sum}' "$1"
}

record() { # OPTIONS...: sets number, tid, ns, end, took_us, inside_us
    attempt "$@"
    while [ $stalls -lt 5 ] && stalled; do
        stalls=$((stalls + 1))
        attempt "$@"
    done
    check "exit $status" [ $status = 0 ]
    check 'a snapshot' [ -f "$tmp/rec/snap-1/perf.data" ]
    awk -F'\t' '$8 == 1 {print $5, $2, $7, $1}' "$tmp/rec/hits.tsv" >"$tmp/hit"
    check 'one hit made the snapshot' [ "$(wc -l <"$tmp/hit")" = 1 ]
    read -r number tid ns end <"$tmp/hit"
    number=$(printf '%d' "0x$number")
    took_us=0 inside_us=0
    read -r took_us inside_us <<EOF
$(sed -n "s/^slow $number $tid //p" "$tmp/program")
EOF
    check 'the program says that this call was slow, in this thread' [ "${took_us:-0}" -gt 0 ]
    "$mtui" export -f marks "$tmp/rec" >"$tmp/marks" 2>>"$tmp/err" </dev/null
    "$mtui" export -f spans "$tmp/rec" >"$tmp/spans" 2>>"$tmp/err" </dev/null
    "$mtui" export -f gaps "$tmp/rec" >"$tmp/gaps" 2>>"$tmp/err" </dev/null
    # The call is in the trace, in its thread. Where samples are missing, it is known only when the thread waited for
    # a CPU (spans that stand outermost), and the rest is said to be lost.
    shown=$(within "$tmp/spans" 3 4 '$6 == "handle"') spans=$(within "$tmp/spans" 3 4 '$2 == 0')
    lost=$(within "$tmp/gaps" 2 3 1)
    check "the call is in the trace ($shown of $ns ns)" [ "$shown" -gt $((ns / 10)) ]
    # Of a call that ran already when the recording began, the time before the trace is missing, and that is said.
    missing=0
    ! grep -q 'had begun .* before the recording' "$tmp/err" ||
        missing=$(awk -F'\t' -v from=$((end - ns)) '
            NR > 1 && (!first || $3 < first) {first = $3}
            END {printf "%d", (first > from ? first - from : 0)}' "$tmp/spans")
    check "nothing of it is missing silently ($spans and $lost of $ns ns, $missing before the recording)" \
        [ $((spans + lost + missing)) -ge $((ns / 100 * 95)) ]
}

# A ring that holds seconds: the call is caught at its return.
at_return() {
    record -s 16M
    check 'no other hit' [ "$(wc -l <"$tmp/rec/hits.tsv")" = 2 ]
    us=$((ns / 1000))
    # Between what the program sees inside and around the call; the two clocks drift by less than a thousandth.
    check "as long as it says ($inside_us <= $us <= $took_us us)" \
        [ $((us + us / 1000)) -ge "${inside_us:-0}" -a $((us - us / 1000)) -le "${took_us:-0}" ]
    check 'JSON tells the duration' \
        grep -q "\"duration_ns\":$ns,\"still_running\":false" "$tmp/out"
    check 'the mark' grep -qP "\t$tid\ttrigger\thandle, took " "$tmp/marks"
}

# A ring that would soon lose its beginning: caught while it runs.
while_running() {
    limit_ms=200
    record -s 1M
    check 'before its end' [ $((ns / 1000)) -lt "${took_us:-0}" ]
    check 'JSON says so' grep -q "\"duration_ns\":$ns,\"still_running\":true" "$tmp/out"
    check 'hits.tsv says so' grep -qP '\t1\trunning(\ttook=\d+)?$' "$tmp/rec/hits.tsv"
    check 'the mark' grep -qP "\t$tid\ttrigger\thandle, still running, " "$tmp/marks"
}

runs=2
[ -z "${MTUI_LONG:-}" ] || runs=10
run=0
while [ $run -lt $runs ]; do
    run=$((run + 1))
    at_return
done
run=$((run + 1))
while_running
[ $stalls = 0 ] || echo "$stalls times the machine stood still for ${limit_ms} ms, and that call was caught"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
