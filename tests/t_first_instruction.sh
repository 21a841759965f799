#!/bin/sh
# A trigger on a function whose first instruction takes no uprobe: the program is not disturbed (tests/first_target.c
# looks at each result, and counts the SIGTRAPs that it gets), and the trigger is hit; or it is refused.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/lib_check.sh
tool=$MTUI_BUILD/tests/first_target
start_clock

if [ "$(id -u)" -ne 0 ]; then
    skip 'uprobes need root or CAP_PERFMON'
    finish_checks
    exit
fi
breaks=false
"$mtui" doctor 2>/dev/null | grep -q '^hardware breakpoints *present' && breaks=true

start() { # FUNCTION; its stdin is fd 7
    rm -f "$tmp/in" "$tmp/ended"
    mkfifo "$tmp/in"
    "$tool" "$1" "$tmp/ended" <"$tmp/in" >"$tmp/victim.out" 2>&1 8<&- &
    victim=$!
    targets="$targets $victim"
    exec 7>"$tmp/in"
    wait_for 10 grep -q ready "$tmp/victim.out"
}
unharmed() { # what untraced it says
    wait_for 20 test -s "$tmp/ended" && [ "$(cat "$tmp/ended")" = 'ended: errors 0, traps 0' ]
}
finish() {
    exec 7>&-
    wait "$victim"
    check "$1: the program ends as ever" [ $? -eq 0 ]
    check "$1: and found nothing wrong" unharmed
    targets=${targets% "$victim"}
}
hit_or_refused() { # WHAT STATUS
    if $breaks; then
        check "$1: there is a snapshot" [ "$2" -eq 0 ]
        check "$1: with the hit" sh -c "[ \$(grep -c '\"snapshot\":1,' '$tmp/out') -eq 1 ]"
    else
        check "$1: refused" [ "$2" -ne 0 ]
        check "$1: with the reason" grep -q 'no uprobe can sit on the instruction' "$tmp/err"
    fi
}
window_ends() { # WHAT HOW
    ! $breaks || check "$1: the window ends: $2" grep -q "\"window_end\":\"$2\"" "$tmp/out"
}

for f in f_spin f_loop f_if f_syscall f_int f_pushf f_pushw f_pop f_popf f_rep f_cpuid f_lock f_vector f_shift; do
    for r in step sample; do
        start "$f"
        "$mtui" attach -p "$victim" -r "$r" -t "$f" --force --batch --json -o "$tmp/attach-$f-$r" >"$tmp/out" 2>"$tmp/err" </dev/null
        hit_or_refused "$f, $r, attach" $?
        case $r-$f in
        step-f_spin | step-f_popf) window_ends "$f, attach" left ;; # popf takes what is above the return address
        step-*) window_ends "$f, attach" returned ;;
        esac
        finish "$f, $r, attach"
        case $f in f_loop | f_syscall | f_pop) ;; *) continue ;; esac
        rm -f "$tmp/ended"
        "$mtui" run -r "$r" -t "$f" --batch --json -o "$tmp/run-$f-$r" -- "$tool" "$f" "$tmp/ended" 100 >"$tmp/out" 2>"$tmp/err" </dev/null
        hit_or_refused "$f, $r, run" $?
        ! $breaks || check "$f, $r, run: unharmed" unharmed
    done
done

# A nop that the kernel may replace by a call: the window is the function's three instructions and nothing else.
rm -f "$tmp/ended"
"$mtui" run -r step -t f_nop --batch --json -o "$tmp/nop" -- "$tool" f_nop "$tmp/ended" 100 >"$tmp/out" 2>"$tmp/err" </dev/null
hit_or_refused 'f_nop' $?
window_ends 'f_nop' returned
! $breaks || check 'f_nop: after three instructions' grep -q '"window_instructions":3[,}]' "$tmp/out"
! $breaks || check 'f_nop: unharmed' unharmed

# More such places than there are breakpoints.
for r in step sample; do
    start f_syscall
    "$mtui" attach -p "$victim" -r "$r" -t f_syscall -t f_int -t f_loop -t f_pushf -t f_lock --force --batch -o "$tmp/five-$r" >"$tmp/out" 2>"$tmp/err" </dev/null
    check "$r: five are refused" [ $? -ne 0 ]
    check "$r: with the instruction" grep -q 'no uprobe can sit on the instruction "' "$tmp/err"
    finish "five, $r"
    "$mtui" run -r "$r" -t f_syscall -t f_int -t f_loop -t f_pushf -t f_lock --batch -o "$tmp/run-five-$r" -- "$tool" f_loop "$tmp/ended" 1 >"$tmp/out" 2>"$tmp/err" </dev/null
    check "$r: five are refused in a program that is started" [ $? -ne 0 ]
    check "$r: with the instruction" grep -q 'no uprobe can sit on the instruction "' "$tmp/err"
done
finish_checks
