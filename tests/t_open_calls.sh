#!/bin/sh
# A slow call that is still running when its program dies or the recording ends is a hit: with its duration, its mark
# and a snapshot. And what is said of calls that were none. What really happened is known from the program
# (tests/stuck_target.c) and from date(1).
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/lib_batch.sh

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

path=$PATH
may_begin() { grep -q recording "$tmp/err"; }
now_ms() { echo $(($(date +%s%N) / 1000000)); }

begin_stuck() { # MODE DIR OPTIONS...: the program and its recording
    stuck_mode=$1 dir=$tmp/$2
    shift 2
    : >"$tmp/said"
    rm -f "$tmp/in"
    mkfifo "$tmp/in"
    "$MTUI_BUILD/tests/stuck_target" "$stuck_mode" <"$tmp/in" >"$tmp/said" &
    stuck=$!
    targets="$targets $stuck"
    exec 7>"$tmp/in"
    wait_for 100 has_threads 2 || bad 'the program has no second thread'
    begin env PATH="$path" "$mtui" attach -p "$stuck" -s 16M --batch -o "$dir" "$@"
    wait_for 100 may_begin || bad 'does not arm'
    echo >&7
}
has_threads() { [ "$(find "/proc/$stuck/task" -mindepth 1 -maxdepth 1 | wc -l)" = "$1" ]; }
until_stuck() { # sets tid, since_ms
    wait_for 100 grep -q '^stuck' "$tmp/said" || bad 'the program does not hang'
    since_ms=$(now_ms)
    tid=$(sed -n 's/^stuck //p' "$tmp/said")
}
open_for() { [ $(($(now_ms) - since_ms)) -ge "$1" ]; }
end_stuck() { kill -9 "$stuck" 2>/dev/null; }

# Exit 0, the snapshot, one hit: of that thread, argument 300, marked, as long as it was open (on our own clock).
check_running() { # NAME
    status=$?
    took_ms=$(($(now_ms) - since_ms))
    check "$1: exit 0" [ $status -eq 0 ]
    check "$1: the snapshot" [ -s "$dir/snap-1/perf.data" ]
    check "$1: one line of JSON" [ "$(grep -c '"snapshot":1,.*"still_running":true' "$tmp/out")" = 1 ]
    check "$1: one hit" [ "$(grep -c job "$dir/hits.tsv")" = 1 ]
    line=$(awk -F'\t' '$3 == "job"' "$dir/hits.tsv")
    check "$1: its thread, argument, snapshot and mark" \
        [ "$(echo "$line" | awk -F'\t' '{print $2, $5, $8, $9}')" = "$tid 12c 1 running" ]
    duration_ms=$(($(echo "$line" | cut -f7) / 1000000))
    check "$1: its duration ($duration_ms of $took_ms ms)" \
        [ "$duration_ms" -ge "$open_ms" -a "$duration_ms" -le $((took_ms + 200)) ]
    "$mtui" export -f marks --snapshot 1 "$dir" >"$tmp/marks" 2>>"$tmp/err" || bad "$1: export"
    check "$1: the mark" grep -q "job" "$tmp/marks"
    [ "$stuck_mode" = compute ] || check_span "$1" $((duration_ms * 95 / 100)) # samples may be missing, with gaps
}
longest_job() { # of the thread, in ms
    "$mtui" export -f spans --snapshot 1 --tid "$tid" "$dir" 2>>"$tmp/err" |
        awk -F'\t' '$6 == "job" && $4 - $3 > most {most = $4 - $3} END {printf "%d", most / 1000000}'
}
# The call stands on the timeline for as long as it is known to have lasted, whatever it did.
check_span() { # NAME MS
    span_ms=$(longest_job)
    check "$1: the call on the timeline ($span_ms of $2 ms)" [ "$span_ms" -ge "$2" ]
}

for how in wait compute; do
    # 1. The program is killed while it hangs, as a watchdog does.
    begin_stuck $how "killed-$how" -t job --slower-than 400ms --json
    until_stuck
    open_ms=1500
    wait_for 100 open_for $open_ms
    end_stuck
    end_of_job 100
    check_running "killed, $how"
    # 2. The recording is asked to end.
    begin_stuck $how "asked-$how" -t job --slower-than 400ms --json
    until_stuck
    open_ms=700
    wait_for 100 open_for $open_ms
    kill -INT "$job"
    end_of_job 100
    check_running "interrupted, $how"
    check "interrupted, $how: the target runs on" alive "$stuck"
    end_stuck
done

# 3. Its time is over.
begin_stuck wait timed -t job --slower-than 400ms --json --duration 5s
until_stuck
open_ms=400
end_of_job 100
check_running 'after a time'
end_stuck

# 4. Not yet slow: no hit. What is said speaks of the calls that there were.
begin_stuck wait young -t job --slower-than 1h
until_stuck
kill -INT "$job"
end_of_job 100
check 'not slow yet: exit 1' [ $? -eq 1 ]
check 'none was slow enough' grep -qE 'none of 300 calls took longer than' "$tmp/err"
check 'not: never hit' sh -c "! grep -q 'never hit' '$tmp/err'"
end_stuck

# 5. It hangs before perf records: a perf that begins when it is told to.
mkdir "$tmp/bin"
cat >"$tmp/bin/perf" <<EOF
#!/bin/sh
case "\$*" in *--overwrite*)
    : >"$tmp/perf-waits"
    read -r _ <"$tmp/perf-goes"
esac
exec $(command -v perf) "\$@"
EOF
chmod +x "$tmp/bin/perf"
mkfifo "$tmp/perf-goes"
path=$tmp/bin:$PATH
may_begin() { [ -e "$tmp/perf-waits" ]; }
begin_stuck compute early -t job --slower-than 1500ms --json --duration 30s
until_stuck
echo >"$tmp/perf-goes"
open_ms=1500
end_of_job 100
check_running 'hung before the recording'
check 'what is missing is said' grep -qE 'the call of job had begun [0-9.]+ m?s before the recording' "$tmp/err"
end_stuck
path=$PATH
may_begin() { grep -q recording "$tmp/err"; }

# 6. It waits and comes back: the call from its entry to its return, the wait in it, and its caller around it. Again where
# samples are missing of it (a gap), since the machine stood still.
has_gap() { # FROM TO
    "$mtui" export -f gaps --snapshot 1 "$dir" 2>/dev/null |
        awk -F'\t' -v tid="$tid" -v from="$1" -v to="$2" '$1 == tid && $2 < to && $3 > from {n++} END {exit !n}'
}
for try in 1 2 3 4 5; do
    begin_stuck back "back-$try" -t job --slower-than 400ms --json
    until_stuck
    end_of_job 100
    status=$?
    end_stuck
    read -r hit_ns returned_ns <<EOF
$(awk -F'\t' '$8 == 1 {print $7, $1}' "$dir/hits.tsv")
EOF
    has_gap $((returned_ns - hit_ns)) "$returned_ns" || break
done
check 'waits and returns: exit 0' [ "$status" -eq 0 ]
"$mtui" export -f spans --snapshot 1 --tid "$tid" "$dir" >"$tmp/spans" 2>>"$tmp/err" || bad 'waits and returns: export'
awk -F'\t' -v ns="$hit_ns" '$6 == "job" && $4 - $3 == ns {print $2, $3, $4}' "$tmp/spans" >"$tmp/span"
check "waits and returns: one span of $hit_ns ns" [ "$(wc -l <"$tmp/span")" = 1 ]
read -r depth from to <"$tmp/span"
check 'waits and returns: the wait is in it' [ "$(awk -F'\t' -v from="$from" -v to="$to" -v depth="$depth" '
    $6 == "[off cpu]" && $2 > depth && $3 >= from && $4 <= to && $4 - $3 > 590000000' "$tmp/spans" | wc -l)" = 1 ]
check 'waits and returns: its caller is around it' [ "$(awk -F'\t' -v from="$from" -v to="$to" -v depth="$depth" '
    $6 == "work" && $2 < depth && $3 <= from && $4 >= to' "$tmp/spans" | wc -l)" = 1 ]

# 7. Left by longjmp: nothing runs any more, whether the program lives or dies.
for end in lives dies; do
    begin_stuck left "left-$end" -t job --slower-than 400ms
    wait_for 100 grep -q '^left' "$tmp/said" || bad 'the program does not leave its call'
    since_ms=$(now_ms)
    wait_for 100 open_for 3000
    if [ $end = lives ]; then kill -INT "$job"; else end_stuck; fi
    end_of_job 100
    check "left, $end: exit 1" [ $? -eq 1 ]
    check "left, $end: no hit" sh -c "! grep -qs job '$tmp/left-$end/hits.tsv'"
    end_stuck
done

# 8. A condition that no call meets: how many there were.
begin_stuck 'done' unmet -t 'job if arg1 > 1000'
end_of_job 100
check 'condition: exit 1' [ $? -eq 1 ]
check 'condition: said' grep -qE '300 calls did not meet the condition' "$tmp/err"
check 'condition: not never hit' sh -c "! grep -q 'never hit' '$tmp/err'"
finish_checks
