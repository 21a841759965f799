#!/bin/sh
# A traced program that starts another one by posix_spawn, with the real perf: the child is a track of its own, with
# its own name and its own functions, and its parent keeps its own.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/lib_check.sh
if ! perf record -q -e cpu-clock -o "$tmp/try.data" true >/dev/null 2>&1; then
    echo "SKIPPED: perf does not record here"
    echo 'field H8 SKIPPED: perf does not record here'
    echo '0 passed, 0 failed, 1 skipped'
    exit 0
fi

# Functions of a thread that the recording shows, each with its module.
functions_of() { awk -F'\t' -v tid="$1" '$1 == tid {n = split($7, part, "/"); print $6 " " part[n]}' "$tmp/spans" | sort -u; }
has() { functions_of "$1" | grep -qx "$2"; }
has_not() { ! functions_of "$1" | grep -q "$2"; }

"$mtui" run -r sample --mode whole --batch -o "$tmp/rec" -- \
    "$MTUI_BUILD/tests/spawner" 300 "$MTUI_BUILD/tests/forker" 10 again >"$tmp/out" 2>"$tmp/err" </dev/null
check 'recorded' [ $? = 0 ]
child=$(grep -x '[0-9][0-9]*' "$tmp/err") # in batch the program's stdout goes there
parent=$(sed -n 's/^pid = //p' "$tmp/rec/session.ini")
check 'the pids are known' [ "${child:-0}" -gt 1 -a "${parent:-0}" -gt 1 ]
"$mtui" export -f spans "$tmp/rec" >"$tmp/spans" 2>"$tmp/err" </dev/null
check 'the child has functions of its own program' has "$child" 'after_exec forker'
check 'and what they call' has "$child" 'spin forker'
check 'and not what only its parent does' has_not "$child" 'parent_work' # until exec it is a copy
check 'the parent has its own' has "$parent" 'parent_work spawner'
check 'and none of the child' has_not "$parent" forker
"$mtui" export -f json "$tmp/rec" >"$tmp/json" 2>"$tmp/err" </dev/null
tr '{' '\n' <"$tmp/json" >"$tmp/lines"
named() { # PID NAME: in the metadata of a Chrome trace the name follows its process
    grep -A1 "\"process_name\",\"pid\":$1," "$tmp/lines" | grep -q "\"name\":\"$2\""
}
check 'the child has its own name' named "$child" forker
check 'the parent its own' named "$parent" spawner
[ "$failed" -gt 0 ] || echo "field H8 a program started by posix_spawn"
finish_checks
