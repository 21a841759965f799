#!/bin/sh
# Batch recordings that end otherwise than by their trigger, with the real perf: perf, the target or mtui is killed,
# mtui is asked to stop again and again. What was written is kept, and nothing is left behind.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/lib_batch.sh

if ! perf record -q -e cpu-clock -o "$tmp/try.data" true >/dev/null 2>&1; then
    echo "SKIPPED: perf does not record here"
    echo '0 passed, 0 failed, 1 skipped'
    exit 0
fi

start_target a
pid=$target

# 1. kill -9 of perf: said, and what was written is kept. Its ring is not: a file without it is no
# snapshot.
begin "$mtui" attach -p "$pid" --mode ring --batch -o "$tmp/k0"
wait_for 100 grep -q recording "$tmp/err" || bad 'does not arm'
kill_perf_of "$pid"
end_of_job 100
check 'perf killed with its ring: exit 1' [ $? -eq 1 ]
check 'no directory is printed' [ ! -s "$tmp/out" ]
check 'what is lost is said' grep -q 'killed by signal 9.*ring' "$tmp/err"
check 'no empty snapshot' [ -z "$(find "$tmp/k0" -name perf.data 2>/dev/null)" ]
begin "$mtui" attach -p "$pid" --mode trigger --batch -o "$tmp/k1"
wait_for 100 grep -q recording "$tmp/err" || bad 'does not arm'
kill_perf_of "$pid"
end_of_job 100
check 'perf killed: exit 1' [ $? -eq 1 ]
check 'and said' grep -qi 'perf' "$tmp/err"
check 'the target runs on' alive "$pid"

begin "$mtui" attach -p "$pid" -t handle_request --max-snapshots 1000 --hold-off 1h --batch -o "$tmp/k1s"
wait_for 100 test -f "$tmp/k1s/snap-1/perf.data" || bad 'no snapshot'
kill_perf_of "$pid"
end_of_job 100
check 'perf killed after a snapshot: exit 0' [ $? -eq 0 ]
check 'the directory all the same' [ "$(cat "$tmp/out")" = "$tmp/k1s" ]
check 'and said what is kept' grep -q 'killed by signal 9.*what was written is kept' "$tmp/err"

# 1b. SIGTERM lets perf write its ring: nothing of it is lost, and that is not said.
begin "$mtui" attach -p "$pid" --mode ring --batch --json --json-end -o "$tmp/k1t"
wait_for 100 grep -q recording "$tmp/err" || bad 'does not arm'
find_perf_of "$pid" || bad 'no perf'
# shellcheck disable=SC2086
kill -TERM $perfs
end_of_job 100
check 'perf ended by SIGTERM: what it wrote is whole' "$mtui" export -f functions -o "$tmp/functions" "$tmp/k1t"
check 'and it is not said to be lost' sh -c "grep -q 'killed by signal 15' '$tmp/err' && ! grep -q 'lost' '$tmp/err'"
check 'the end in a word' grep -q '^{"end":"recorder-failed","sentence":"perf was killed by signal 15' "$tmp/out"

# 1b2. A perf that hangs from its start is waited for, and named.
cat >"$tmp/stuck" <<'END'
#!/bin/sh
case "$*" in *'-p '*) exec sleep 1000 ;; esac
exec perf "$@"
END
chmod +x "$tmp/stuck"
MTUI_PERF=$tmp/stuck begin "$mtui" attach -p "$pid" -r sample --batch -o "$tmp/stuck.d"
check 'a stuck perf: said' wait_for 100 grep -qE '^mtui: waiting for perf \(pid [0-9]+\): `ping` was sent [0-9.]+ s ago and is not answered yet' "$tmp/err"
kill -INT $job
end_of_job 100
check 'a stuck perf: exit 1' [ $? -eq 1 ]

# 1c. Calls that are all left by exceptions, or are not slow enough: of 200 every odd one throws, the last one too, of
# which nothing shows that it was left.
mkfifo "$tmp/in.throw"
"$MTUI_BUILD/tests/victim_throw" <"$tmp/in.throw" >"$tmp/out.throw" &
thrower=$!
targets="$targets $thrower"
exec 6>"$tmp/in.throw"
wait_for 100 grep -q ready "$tmp/out.throw" || bad 'victim_throw does not start'
begin "$mtui" attach -p "$thrower" -t thrower --slower-than 90s --batch --json --json-end -o "$tmp/thrown"
wait_for 100 grep -q recording "$tmp/err" || bad 'does not arm'
echo 'throw 200' >&6
wait_for 100 grep -q 'done 100' "$tmp/out.throw" || bad 'nothing is thrown'
kill -INT $job
end_of_job 100
check 'no slow call: exit 1' [ $? -eq 1 ]
check 'no slow call: how long they took' grep -q '; none of 100 calls took longer than 90.0 s (half < [0-9.]* [un]s, 99 % < .*, max ' "$tmp/err"
check 'thrown: said' grep -q '; 99 calls were left without a return (exception, longjmp)' "$tmp/err"
check 'thrown: in JSON' grep -q '^{"end":"stopped",.*"snapshots":0,"hits":0,"calls":200,"calls_left":99,"p50_below_ns":[0-9]*,"p99_below_ns":[0-9]*,"max_ns":[0-9]*}$' "$tmp/out"
# Names that are not found: as written in the source, where the linker's has more template arguments; and one that only
# a stripped library could have, which is no reason, but a possibility.
"$mtui" attach -p "$thrower" -t 'app::cache<std::string, std::vector<int>>::lookup' --batch -o "$tmp/none" >"$tmp/out" 2>"$tmp/err" </dev/null
check 'a name with template arguments: near' grep -q 'lookup; near: app::cache::lookup' "$tmp/err"
"$mtui" attach -p "$thrower" -t no_such_function --batch -o "$tmp/none" >"$tmp/out" 2>"$tmp/err" </dev/null
check 'not found: libraries come last' grep -qE 'no function no_such_function(; near: [^;(]*)?(; it may be in [^;]* stripped[^;]*)?$' "$tmp/err"
exec 6>&-

# 2. kill -9 of mtui: perf goes too, the target runs on, no probe is left.
begin "$mtui" attach -p "$pid" -t handle_request --hits 1000000 --batch -o "$tmp/k2"
wait_for 100 grep -q recording "$tmp/err" || bad 'does not arm'
kill -9 $job
end_of_job 100 2>/dev/null
check 'perf ends' wait_for 100 no_perf_of "$pid"
check 'the target runs on' alive "$pid"
check 'unstopped' threads_run "$pid"
[ ! -r /sys/kernel/tracing/uprobe_events ] || check 'no uprobe is left' [ ! -s /sys/kernel/tracing/uprobe_events ]
check 'nothing of ours is open in the target' sh -c "! ls -l /proc/$pid/fd | grep -q perf"

# 3. kill -9 of the target, after a snapshot: its names are still there.
start_target b
begin "$mtui" attach -p "$target" -t handle_request --max-snapshots 1000 --hold-off 1h --batch -o "$tmp/k3"
wait_for 100 test -f "$tmp/k3/snap-1/perf.data" || bad 'no snapshot'
kill -9 "$target"
end_of_job 100
check 'target killed: the snapshot counts' [ $? -eq 0 ]
check 'the directory' [ "$(cat "$tmp/out")" = "$tmp/k3" ]
"$mtui" export -f functions "$tmp/k3" --snapshot 1 >"$tmp/functions" 2>"$tmp/err" </dev/null || bad "export: exit $?"
check 'a dead program still has its names' grep -qP '\thandle_request\t' "$tmp/functions"

start_target c
pid=$target

# 4. Asked to stop twice, and ten times, by signals to the process group as a terminal or a supervisor sends them:
# the recording is finished, not cut off.
ticks() { awk '{ print $14 }' "/proc/$pid/stat"; } # of CPU time in user space
has_run() { [ "$(ticks)" -ge "$1" ]; }
for signal in INT TERM; do
    for times in 2 10; do
        dir=$tmp/again-$signal-$times
        begin setsid sh -c 'echo $$ >"$0"; exec "$@"' "$tmp/group" "$mtui" attach -p "$pid" --batch -o "$dir"
        wait_for 100 grep -q recording "$tmp/err" || bad 'does not arm'
        wait_for 100 has_run $(($(ticks) + 20)) || bad 'the target does not run'
        group=$(cat "$tmp/group") n=0
        while [ $n -lt $times ] && kill -$signal "-$group" 2>/dev/null; do
            n=$((n + 1))
            read -r _ <"$tmp/tick"
        done
        end_of_job 100
        check "$signal $times times: exit 0" [ $? -eq 0 ]
        check 'the directory' [ "$(cat "$tmp/out")" = "$dir" ]
        "$mtui" export -f functions "$dir" >"$tmp/functions" 2>"$tmp/err" </dev/null || bad "export: exit $?"
        check 'all is there' grep -qP '\tcompute\t' "$tmp/functions"
        check 'no perf is left' no_perf_of "$pid"
        check 'the target runs on' alive "$pid"
        check 'unstopped' threads_run "$pid"
    done
done

# 6. The program replaces itself by one without the function: nothing is left to wait for.
mkfifo "$tmp/in.shell"
bash -c 'read -r _; exec sleep 600' <"$tmp/in.shell" &
shell=$!
targets="$targets $shell"
exec 6>"$tmp/in.shell"
begin "$mtui" attach -p "$shell" -t execute_command --batch --json --json-end -o "$tmp/replaced"
wait_for 100 grep -q recording "$tmp/err" || bad 'a shell is not armed'
echo >&6
end_of_job 100
check 'replaced: exit 1' [ $? -eq 1 ]
check 'replaced: why' grep -q 'execute_command is disarmed: the program was replaced (exec)' "$tmp/err"
check 'replaced: the end' grep -q 'no trigger is left that could fire: the recording ends' "$tmp/err"
check 'replaced: in a word' grep -q '^{"end":"program-replaced",' "$tmp/out"
check 'replaced: the target runs on' grep -q '^sleep$' "/proc/$shell/comm"
exec 6>&-

no_stepper_of() { [ -z "$(pgrep -f "step-recorder --pid $1 ")" ]; }

# 5. The same while a call is stepped, which a kill of the recorder would kill the program with.
if ! "$mtui" doctor 2>/dev/null | grep -q '^single-step.*present'; then
    skip 'single-stepping does not work here'
else
    begin setsid sh -c 'echo $$ >"$0"; exec "$@"' "$tmp/group" "$mtui" attach -p "$pid" -r step -t handle_request \
        --budget 1000000000 --batch -o "$tmp/step"
    wait_for 100 grep -q handle_request "$tmp/step/hits.tsv" || wait_for 100 grep -q recording "$tmp/err"
    group=$(cat "$tmp/group") n=0
    while [ $n -lt 10 ] && kill -TERM "-$group" 2>/dev/null; do
        n=$((n + 1))
        read -r _ <"$tmp/tick"
    done
    end_of_job 100
    check 'step: the recorder has ended' wait_for 100 no_stepper_of "$pid"
    check 'step: the target runs on' alive "$pid"
    check 'step: unstopped' threads_run "$pid"
fi

# 6. A limit on the size of files (ulimit -f, in blocks of 512 bytes) is as a full disk: what was written until then is
# kept, by perf and by mtui, neither is killed by SIGXFSZ.
limited() { # BLOCKS COMMAND...
    (
        # shellcheck disable=SC3045
        ulimit -f "$1"
        shift
        "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    )
}
for mode in whole ring; do
    dir=$tmp/limit-$mode
    limited 200 "$mtui" attach -p "$pid" --mode $mode --duration 2s --batch -o "$dir"
    check "$mode: a file that may not grow: exit 0" [ $? -eq 0 ]
    check 'the directory' [ "$(cat "$tmp/out")" = "$dir" ]
    check 'said' grep -q 'limit on the size of files (ulimit -f).*what was written is kept' "$tmp/err"
    check 'no longer than it may be' [ "$(wc -c <"$dir/snap-1/perf.data")" -le 102400 ]
    check 'nearly as long' [ "$(wc -c <"$dir/snap-1/perf.data")" -gt 51200 ]
    "$mtui" export -f functions "$dir" >"$tmp/functions" 2>"$tmp/err" </dev/null || bad "export: exit $?"
    check 'what it has can be read' grep -qP '\tcompute\t' "$tmp/functions"
    check 'no perf is left' no_perf_of "$pid"
    check 'the target runs on' alive "$pid"
    check 'unstopped' threads_run "$pid"
done
limited 1 "$mtui" attach -p "$pid" --mode whole --duration 2s --batch -o "$tmp/limit-1"
check 'not even a header fits: exit 1' [ $? -eq 1 ]
check 'said' grep -q 'limit on the size of files' "$tmp/err"
check 'the target runs on' alive "$pid"
"$mtui" run --batch --mode whole -o "$tmp/limit-run" -- cat /proc/self/status >"$tmp/out" 2>"$tmp/err" </dev/null
ignored=$(sed -n 's/^SigIgn:[[:space:]]*//p' "$tmp/err")
check 'a program that is started is killed by it as ever' [ -n "$ignored" ]
check 'signal 25 is not ignored' [ $((0x${ignored:-1000000} & 0x1000000)) -eq 0 ]

# 7. A trigger in a library that the started program does not map, yet or ever: deadline and signals are heard all the
# same, long before the program ends.
program_of() { pgrep -f "^sleep $1\$"; }
begin "$mtui" run -r sample -t libz.so.1:inflate --duration 1s --batch -o "$tmp/later" -- sleep 98761
end_of_job 100
check 'the deadline with a trigger that is not there yet: exit 1' [ $? -eq 1 ]
check 'it waited for it' grep -q 'waiting for what is loaded later' "$tmp/err"
check 'no longer than asked' grep -q 'stopped after 1.00 s, as asked for' "$tmp/err"
program=$(program_of 98761)
check 'the program runs on' alive "${program:-0}"
kill -9 "$program"
begin "$mtui" run -r sample -t libz.so.1:inflate --batch -o "$tmp/signal" -- sleep 98762
wait_for 100 grep -q 'waiting for what is loaded later' "$tmp/err" || bad 'does not wait'
kill -INT $job
end_of_job 100
check 'SIGINT with a trigger that is not there yet: exit 1' [ $? -eq 1 ]
check 'said' grep -q 'no snapshot: ' "$tmp/err"
check 'the program got the signal too' sh -c "! pgrep -f '^sleep 98762\$'"

exec 7>&-
finish_checks
