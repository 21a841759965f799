#!/bin/sh
# The step recorder from the command line: one exact call of a running program, a program from its start,
# the demo, and what becomes of the target when mtui is killed.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/lib_check.sh
tool=$MTUI_BUILD/tests/step_victim
start_clock

start() { # SCENARIO; its stdin is fd 7
    rm -f "$tmp/in" "$tmp/victim.out" # what the one before has said
    mkfifo "$tmp/in"
    "$tool" "$1" <"$tmp/in" >"$tmp/victim.out" 2>"$tmp/victim.err" &
    victim=$!
    targets="$targets $victim"
    exec 7>"$tmp/in"
    wait_for 10 grep -q ready "$tmp/victim.out"
}
finish() { # ends by itself, having found nothing wrong
    exec 7>&-
    wait "$victim"
    check "$1: the program is unharmed" [ $? -eq 0 ]
    check "$1: and found no error" grep -q '^rounds [0-9]* errors 0$' "$tmp/victim.out"
    targets=${targets% "$victim"} # gone: its number may be another's
}

if [ "$(id -u)" -ne 0 ]; then
    skip 'uprobes need root or CAP_PERFMON'
    finish_checks
    exit
fi

# One call of a running program.
start plain
"$mtui" attach -r step -p "$victim" -t work --batch -o "$tmp/one" >"$tmp/out" 2>"$tmp/err" </dev/null || bad "attach: exit $?"
check 'the directory, alone' [ "$(cat "$tmp/out")" = "$tmp/one" ]
check 'said how it records' grep -q 'recording with step' "$tmp/err"
check 'the clock' grep -q '^clock = instructions$' "$tmp/one/session.ini"
check 'the hit, on that clock' grep -qP '^1000000000\t'"$victim"'\twork\t[0-9a-f]+\t[0-9a-f]+\t[0-9a-f]+\t0\t1$' "$tmp/one/hits.tsv"
check 'anchors' grep -qP '^1000000000\t[1-9]\d*\t'"$victim"'\tbegin\t0$' "$tmp/one/anchors.tsv"
"$mtui" export -f spans "$tmp/one" >"$tmp/spans" 2>"$tmp/err" </dev/null || bad "export: exit $?"
awk -F '\t' 'NR > 1 {print $6}' "$tmp/spans" | tr '\n' ' ' >"$tmp/names"
# work calls scenario (plain), which calls leaf twice and expect; then leaf once more.
check 'the call tree of the source' grep -q 'work plain leaf leaf expect leaf ' "$tmp/names"
awk -F '\t' '$6 == "work" {d = $2} $6 == "plain" {p = $2 - d} $6 == "expect" {e = $2 - d} END {print p, e}' "$tmp/spans" >"$tmp/depths"
check 'nested as in the source' [ "$(cat "$tmp/depths")" = '1 2' ]
check 'the hit is a mark' [ "$("$mtui" export -f marks "$tmp/one" 2>/dev/null | grep -c 'trigger	work')" = 1 ]
check 'no gaps' [ "$("$mtui" export -f gaps "$tmp/one" 2>/dev/null | wc -l)" = 1 ]
perf script -i "$tmp/one/snap-1/perf.data" --itrace=be >"$tmp/perf" 2>&1
check 'perf reads it too' grep -q 'work' "$tmp/perf"
check 'without an error' sh -c "! grep -qi 'error' '$tmp/perf'"
check 'the Nth hit' "$mtui" attach -r step -p "$victim" -t work --hits 5 --truth "$tmp/truth" --batch -o "$tmp/nth" >/dev/null 2>"$tmp/err" </dev/null
check 'four before it were counted' [ "$(grep -c 'work.*	0$' "$tmp/nth/hits.tsv")" -ge 4 ]
check 'the truth' grep -q 'call' "$tmp/truth"
# What mtui had no time to put into a snapshot, because it was killed.
cp -r "$tmp/nth" "$tmp/left" && mv "$tmp/left/snap-1/perf.data" "$tmp/left/perf.data.1" && rmdir "$tmp/left/snap-1"
"$mtui" export -f spans "$tmp/nth" >"$tmp/spans" 2>/dev/null
check 'it opens' sh -c "'$mtui' export -f spans '$tmp/left' 2>'$tmp/err' | cmp - '$tmp/spans'"
check 'with a note' grep -q 'not put into a snapshot' "$tmp/err"
check 'also by its name' sh -c "'$mtui' export -f spans '$tmp/left/perf.data.1' 2>/dev/null | cmp - '$tmp/spans'"
"$mtui" attach -r step -p "$victim" -t work@return --batch -o "$tmp/no" >/dev/null 2>"$tmp/err" </dev/null
check '@return is refused' grep -q 'without @return' "$tmp/err"
"$mtui" attach -r step -p "$victim" -t work --kernel --batch -o "$tmp/no" >/dev/null 2>"$tmp/err" </dev/null
check '--kernel is refused' grep -q 'user code only' "$tmp/err"
finish 'attach'

# mtui is killed in the middle of a window.
start many
"$mtui" attach -r step -p "$victim" -t work --budget 100000000 --batch -o "$tmp/killed" >/dev/null 2>"$tmp/err" </dev/null &
ours=$!
check 'it is traced' wait_for 20 sh -c "! grep -q '^TracerPid:.0\$' /proc/$victim/status"
check 'a call is stepped' wait_for 20 grep -q 'begin' "$tmp/killed/anchors.tsv"
kill -9 "$ours"
check 'the recorder lets go' wait_for 20 grep -q '^TracerPid:.0$' "/proc/$victim/status"
finish 'killed'
check 'what was stepped is a snapshot' wait_for 20 test -s "$tmp/killed/snap-1/perf.data"
check 'it shows the calls' sh -c "'$mtui' export -f functions '$tmp/killed' 2>'$tmp/err' | grep -qP '\tmany\t'"
check 'and why it ends' sh -c "'$mtui' export -f marks '$tmp/killed' 2>/dev/null | grep -q 'note.*mtui was gone'"
perf script -i "$tmp/killed/snap-1/perf.data" --itrace=be >"$tmp/perf" 2>"$tmp/perf.err"
check 'perf reads it' grep -q ' leaf' "$tmp/perf"
check 'without a word' sh -c "! grep -i 'error' '$tmp/perf' '$tmp/perf.err'"

# The recorder is ended by a signal that nobody should send: what was stepped is a snapshot.
start many
begin "$mtui" attach -r step -p "$victim" -t work --budget 100000000 --batch -o "$tmp/signal"
check 'a signal: a call is stepped' wait_for 20 grep -q 'begin' "$tmp/signal/anchors.tsv"
kill -HUP "$(pgrep -f "step-recorder.*$tmp/signal")"
end_of_job 20
check 'a signal: exit 0, there is a snapshot' [ $? -eq 0 ]
check 'a signal: it shows the calls' sh -c "'$mtui' export -f functions '$tmp/signal' 2>/dev/null | grep -qP '\tmany\t'"
finish 'a signal'

# The disk runs full: the recording ends as failed, what was written before is kept, the target is let go of.
mkdir "$tmp/small"
if ! mount -t tmpfs -o size=3m none "$tmp/small" 2>/dev/null; then
    skip 'a full disk (nothing can be mounted)'
else
    trap 'umount "$tmp/small" 2>/dev/null; clean' EXIT
    start plain
    begin "$mtui" attach -r step -p "$victim" -t work --batch --max-snapshots 1000 -s 512K --hold-off 100ms -o "$tmp/small/full"
    check 'full disk: snapshots before it' wait_for 20 test -s "$tmp/small/full/snap-2/perf.data"
    head -c 3900000 /dev/zero >"$tmp/small/fill" 2>/dev/null
    end_of_job 20
    check 'full disk: exit 0, snapshots were written' [ $? -eq 0 ]
    check 'full disk: said' grep -q '^mtui: the disk is full: free some space .*what was written is kept$' "$tmp/err"
    check 'full disk: the directory' [ "$(cat "$tmp/out")" = "$tmp/small/full" ]
    check 'full disk: let go of' grep -q '^TracerPid:.0$' "/proc/$victim/status"
    check 'full disk: no incomplete file' [ -z "$(find "$tmp/small/full" -name 'perf.data*' -size 0; ls "$tmp/small/full"/perf.data* 2>/dev/null)" ]
    check 'full disk: the first is kept' sh -c "'$mtui' export -f spans --snapshot 1 '$tmp/small/full' 2>/dev/null | grep -q 'plain'"
    # The truth alone does not fit. What was incomplete is gone: its room is taken, too.
    head -c 3900000 /dev/zero >"$tmp/small/more" 2>/dev/null
    "$mtui" attach -r step -p "$victim" -t work --batch --truth "$tmp/small/truth" -o "$tmp/cut" >"$tmp/out" 2>"$tmp/err" </dev/null && bad 'the truth does not fit: exit 0'
    check 'full disk: the truth is cut, and that is said' grep -q '^mtui: the truth (--truth) cannot be written whole: No space left' "$tmp/err"
    check 'full disk: the window is kept' sh -c "'$mtui' export -f spans '$tmp/cut' 2>/dev/null | grep -q work"
    finish 'full disk'
    umount "$tmp/small"
fi

# A program from its first instruction; its exec took two ticks.
"$mtui" run -r step --budget 3000 --batch -o "$tmp/run" -- /bin/true >"$tmp/out" 2>"$tmp/err" </dev/null || bad "run: exit $?"
check 'the directory of run' [ "$(cat "$tmp/out")" = "$tmp/run" ]
check 'from the first instruction' sh -c "'$mtui' export -f branches '$tmp/run' 2>/dev/null | sed -n 2p | grep -qP '^1000000002\t\d+\t-1\tbegin\t0\t'"
check 'to the end of the budget, once' [ "$(grep -cP '^1000003002\t\d+\t\d+\tend:budget\t' "$tmp/run/anchors.tsv") $(grep -c 'end' "$tmp/run/anchors.tsv")" = '1 1' ]
# And from a function in it, found before it runs.
mkfifo "$tmp/hold"
exec 6<>"$tmp/hold"
"$mtui" run -r step -t work --batch -o "$tmp/run2" -- "$tool" plain >"$tmp/out" 2>"$tmp/err" <&6 || bad "run -t: exit $?"
check 'its very first' grep -qP '\twork\t[0-9a-f]+\t1\t' "$tmp/run2/hits.tsv"
kill "$(sed -n 's/^pid = //p' "$tmp/run2/session.ini")" # it is left running, as batch does
"$mtui" run -r step -t '/^(leaf|work)$/' --batch --json -o "$tmp/set" -- "$tool" plain >"$tmp/out" 2>"$tmp/err" <&6 || bad "a set: exit $?"
kill "$(sed -n 's/^pid = //p' "$tmp/set/session.ini")"
check 'a set: the snapshot names the function' grep -qF '"trigger":"/^(leaf|work)$/","function":"work"' "$tmp/out"
check 'a set: the hit, too' grep -qP '\t1\tfunction=work$' "$tmp/set/hits.tsv"
check 'a set: the mark, too' sh -c "'$mtui' export -f marks '$tmp/set' 2>/dev/null | grep -qF '	trigger	work (/^(leaf|work)\$/)'"
check 'a call of it' sh -c "'$mtui' export -f spans '$tmp/run2' 2>/dev/null | grep -q plain"
# The program's end, right behind its only call, comes before the snapshot is asked for, or after, or between.
brief_runs=0
while [ $brief_runs -lt 25 ]; do
    "$mtui" run -r step -t brief --batch -o "$tmp/brief$brief_runs" -- "$MTUI_BUILD/tests/brief_target" \
        >"$tmp/out" 2>"$tmp/err" </dev/null || break
    [ "$("$mtui" export -f spans "$tmp/brief$brief_runs" 2>>"$tmp/err" | cut -f6 | grep -cx brief)" = 1 ] || break
    brief_runs=$((brief_runs + 1))
done
check "the call before the end, each of $brief_runs of 25 times" [ $brief_runs = 25 ]

# A user without any privilege: uprobes are refused, and hardware breakpoints stop the program instead.
be_user
if ! user_breaks || [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" != 0 ]; then
    skip 'a user without privileges (no hardware breakpoints, perf_event_paranoid above 2, or yama)'
else
    rm -f "$tmp/in" "$tmp/victim.out"
    mkfifo "$tmp/in"
    $as_user "$tmp/user/step_victim" plain <"$tmp/in" >"$tmp/victim.out" 2>"$tmp/victim.err" &
    victim=$!
    targets="$targets $victim"
    exec 7>"$tmp/in"
    wait_for 10 grep -q ready "$tmp/victim.out"
    $as_user "$tmp/user/mtui" attach -r step -p "$victim" -t work --hits 5 --truth "$tmp/user/truth" --batch -o "$tmp/user/one" >"$tmp/out" 2>"$tmp/err" </dev/null || bad "a user's attach: exit $?"
    check 'a user: the hit, with its address and argument' grep -qP '^1000000000\t'"$victim"'\twork\t[0-9a-f]+\t[0-9a-f]+\t[0-9a-f]+\t0\t1$' "$tmp/user/one/hits.tsv"
    "$mtui" export -f spans "$tmp/user/one" >"$tmp/spans" 2>"$tmp/err" </dev/null || bad "export: exit $?"
    awk -F '\t' 'NR > 1 {print $6}' "$tmp/spans" | tr '\n' ' ' >"$tmp/names"
    check 'a user: the call tree of the source' grep -q 'work plain leaf leaf expect leaf ' "$tmp/names"
    address=$(awk -F '\t' '$8 == 1 {print $4}' "$tmp/user/one/hits.tsv")
    check 'a user: from the first instruction' sh -c "sed -n 1p '$tmp/user/truth' | grep -q 'begin	0	$address	'"
    perf script -f -i "$tmp/user/one/snap-1/perf.data" --itrace=b -F flags,ip,addr 2>&1 | grep -v 'tr strt\|tr end' | sed 's/=>//' | awk '{print $(NF-1), $NF}' >"$tmp/perf"
    awk '$3 !~ /begin|syscall|async|trap/ {print $4, $5}' "$tmp/user/truth" >"$tmp/truth.branches"
    check 'a user: perf reads the same branches' cmp -s "$tmp/perf" "$tmp/truth.branches"
    $as_user "$tmp/user/mtui" attach -r step -p "$victim" -t work -t leaf --batch -o "$tmp/user/nested" >"$tmp/out" 2>"$tmp/err" </dev/null || bad "a user's nested triggers: exit $?"
    $as_user "$tmp/user/mtui" attach -r step -p "$victim" -t '/^(work|plain|leaf|expect|raise_signals)$/' --batch -o "$tmp/user/many" >"$tmp/out" 2>"$tmp/err" </dev/null && bad 'a user: five functions are too many'
    check 'a user: said why' grep -q 'or choose 4 at most' "$tmp/err"
    check 'a user: let go of' grep -q '^TracerPid:.0$' "/proc/$victim/status"
    finish "a user's program"
    $as_user "$tmp/user/mtui" run -r step -t work --batch -o "$tmp/user/run" -- "$tmp/user/step_victim" plain >"$tmp/out" 2>"$tmp/err" <&6 || bad "a user's run: exit $?"
    check 'a user: the very first call' grep -qP '\twork\t[0-9a-f]+\t1\t' "$tmp/user/run/hits.tsv"
    kill "$(sed -n 's/^pid = //p' "$tmp/user/run/session.ini")"
fi
# What ends a window before its call is said, and kept; what is not the recorder's business is refused.
start recursion
"$mtui" attach -r step -p "$victim" -t work --budget 50 --batch --json -o "$tmp/short" >"$tmp/out" 2>"$tmp/err" </dev/null || bad "a small budget: exit $?"
check 'the budget is said' grep -q 'over after 50 instructions in .*, not whole: its budget of instructions was spent' "$tmp/err"
check 'the budget stands in the line of the snapshot' grep -q '"window_end":"budget","window_instructions":50,"window_wall_ns":[1-9][0-9]*}$' "$tmp/out"
check 'and in the trace, where it ends' [ "$("$mtui" export -f marks "$tmp/short" 2>/dev/null | grep -cP '^1000000050\t'"$victim"'\tnote\twindow over: .*--budget')" = 1 ]
check 'the budget is kept' grep -qP '\tend:budget\t' "$tmp/short/anchors.tsv"
"$mtui" attach -r step -p "$victim" -t recurse -t leaf --force --batch -o "$tmp/nested" >"$tmp/out" 2>"$tmp/err" </dev/null || bad "nested triggers: exit $?"
check 'a whole call says nothing' sh -c "! grep -q 'not whole' '$tmp/err'"
for option in '--freq 99' '--timing high' "-p $$"; do
    # shellcheck disable=SC2086
    "$mtui" attach -r step -p "$victim" $option -t work --batch -o "$tmp/refused" >"$tmp/out" 2>"$tmp/err" </dev/null && bad "step takes $option"
    check "step $option: said why" grep -q '^mtui: step ' "$tmp/err"
done
finish 'a small budget, nested triggers'

# The demo.
"$mtui" demo -r step --batch -o "$tmp/demo" >"$tmp/out" 2>"$tmp/err" </dev/null || bad "demo: exit $?"
for f in handle_slow_request rebuild_cache render_page render_block append_text find_route parse_headers write_reply; do
    check "demo: $f" grep -q " $f\$" "$tmp/out"
done
# 6 pages and one more, each a tree of depth 4 (31 blocks), exactly.
check 'demo: exact counts' grep -qE '^ +217 .* render_block$' "$tmp/out"
check 'demo: where it lies' grep -q "$tmp/demo" "$tmp/out"

finish_checks
