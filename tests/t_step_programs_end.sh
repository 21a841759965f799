#!/bin/sh
# What becomes of a program while it is stepped: its main thread ends and the others go on, it is replaced by another.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/lib_check.sh
tool=$MTUI_BUILD/tests/lone_target
start_clock

if [ "$(id -u)" -ne 0 ]; then
    skip 'uprobes need root or CAP_PERFMON'
    finish_checks
    exit
fi

one_call() { # WHAT DIR: work calls 10 leaves and returns
    "$mtui" export -f functions "$2" >"$tmp/functions" 2>&1
    check "$1: the window ends with its call" grep -q '"window_end":"returned"' "$tmp/out"
    check "$1: which is there once" grep -q "^1	.*	work	" "$tmp/functions"
    check "$1: with what it calls" grep -q "^10	.*	leaf	" "$tmp/functions"
    check "$1: and no gap" sh -c "! grep -q untraced '$tmp/functions'"
}
main_has_ended() {
    grep -q '^State:.*Z' "/proc/$victim/status"
}

mkfifo "$tmp/in"
"$tool" <"$tmp/in" >"$tmp/victim.out" &
victim=$!
targets="$targets $victim"
exec 7>"$tmp/in"
wait_for 10 main_has_ended
"$mtui" attach --batch --json -r step -t work --max-snapshots 1 -o "$tmp/attached" -p "$victim" >"$tmp/out" 2>"$tmp/err"
check 'attached after its end: step records' [ $? -eq 0 ]
one_call 'attached after its end' "$tmp/attached"
check 'of a thread that makes threads it is not said that it blocks signals' sh -c "! grep -q 'blocks SIGTRAP' '$tmp/err'"
"$mtui" attach --batch --json -r sample -t work --max-snapshots 1 -o "$tmp/sampled" -p "$victim" >"$tmp/out" 2>"$tmp/err"
check 'sample records it, too' [ $? -eq 0 ]
exec 7>&-
wait "$victim"
check 'it is unharmed' [ $? -eq 0 ]
targets=${targets% "$victim"}

mkfifo "$tmp/in2"
"$mtui" run --batch --json -r step -t work --max-snapshots 1 -o "$tmp/run" -- "$tool" <"$tmp/in2" >"$tmp/out" 2>"$tmp/err" &
batch=$!
exec 7>"$tmp/in2"
wait_for 20 grep -q window_end "$tmp/out"
exec 7>&-
wait "$batch"
one_call 'started' "$tmp/run"

# Two programs that lie at the same addresses.
cat >"$tmp/first.c" <<C
#include <unistd.h>
int main(void) { execl("$tmp/second", "second", (char *)0); return 1; }
C
echo 'int main(void) { return 0; }' >"$tmp/second.c"
if ! cc -static -O1 -o "$tmp/first" "$tmp/first.c" 2>/dev/null || ! cc -static -O1 -o "$tmp/second" "$tmp/second.c" ||
    ! perf --version >/dev/null 2>&1; then
    skip 'no static programs can be built here, or there is no perf'
else
    "$mtui" run --batch -r step --mode whole -o "$tmp/exec" -- "$tmp/first" >/dev/null 2>"$tmp/err"
    check 'exec: recorded' [ $? -eq 0 ]
    perf script -i "$tmp/exec/snap-1/perf.data" --itrace=be -F ip,addr >"$tmp/perf" 2>"$tmp/perf.err"
    "$mtui" export -f branches "$tmp/exec" 2>/dev/null | awk -F '\t' 'NR > 1 { print $5, $6 }' >"$tmp/ours"
    awk '{ print $1, $NF }' "$tmp/perf" >"$tmp/theirs"
    check 'exec: perf reads it without an error' sh -c "! grep -q 'trace error' '$tmp/perf' '$tmp/perf.err'"
    check 'exec: there are branches' [ "$(wc -l <"$tmp/ours")" -gt 1000 ]
    check 'exec: the same as mtui has' cmp -s "$tmp/ours" "$tmp/theirs"
fi
finish_checks
