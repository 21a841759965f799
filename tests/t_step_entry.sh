#!/bin/sh
# A window ends with the return of its call, whatever the function's first instruction does to the stack: uprobes stop
# the thread behind it (tests/entry_target.c).
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/lib_check.sh
tool=$MTUI_BUILD/tests/entry_target
start_clock

if [ "$(id -u)" -ne 0 ]; then
    skip 'uprobes need root or CAP_PERFMON'
    finish_checks
    exit
fi

mkfifo "$tmp/in"
"$tool" <"$tmp/in" >"$tmp/victim.out" &
victim=$!
targets="$targets $victim"
exec 7>"$tmp/in"
wait_for 10 grep -q ready "$tmp/victim.out"

returns() { # FUNCTION INSTRUCTIONS, as the program's source has them; 0: not known
    "$mtui" attach --batch --json -r step -t "$1" --max-snapshots 1 -o "$tmp/$1" -p "$victim" >"$tmp/out" 2>"$tmp/err"
    check "$1: recorded" [ $? -eq 0 ]
    check "$1: ends with its return" grep -q '"window_end":"returned"' "$tmp/out"
    [ "$2" -eq 0 ] || check "$1: $2 instructions" grep -q "\"window_instructions\":$2," "$tmp/out"
}
returns by_pop 4
returns by_pop_and_call 6
returns by_push 4
returns by_pushf 4
returns by_sub 4
returns by_add 4
returns by_lea 4
returns by_enter 4
returns by_nothing 2
returns vfork 0
exec 7>&-
wait "$victim"
check 'the program is unharmed' [ $? -eq 0 ]
targets=${targets% "$victim"}
finish_checks
