#!/bin/sh
# The whole job without a terminal, with the real perf: record by a trigger, read it back, refuse what
# cannot work.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/lib_batch.sh

if ! "$mtui" doctor >"$tmp/doctor" 2>&1; then
    bad 'mtui doctor fails'
    cat "$tmp/doctor"
fi
if ! perf record -q -e cpu-clock -o "$tmp/try.data" true >/dev/null 2>&1; then
    echo "SKIPPED: perf does not record here"
    echo '0 passed, 0 failed, 1 skipped'
    exit 0
fi

start_target a
pid=$target

# 1. A trigger, a snapshot, and the names in it.
if "$mtui" attach -p "$pid" -t handle_request --batch -o "$tmp/one" >"$tmp/out" 2>"$tmp/err" </dev/null; then
    ok
else
    bad "attach -t handle_request: exit $?"
fi
check 'stdout is the directory alone' [ "$(cat "$tmp/out")" = "$tmp/one" ]
check 'a snapshot' [ -f "$tmp/one/snap-1/perf.data" ]
check 'mode 0700' [ "$(stat -c %a "$tmp/one")" = 700 ]
check 'the hit is written down' grep -qP '^\d+\t\d+\thandle_request\t[0-9a-f]+\t[0-9a-f]+\tf4240\t0\t1$' "$tmp/one/hits.tsv"
"$mtui" export -f functions "$tmp/one" >"$tmp/functions" 2>"$tmp/err" </dev/null || bad "export: exit $?"
check 'export names the function' grep -qP '\thandle_request\t' "$tmp/functions"
check 'and its callee' grep -qP '\tcompute\t' "$tmp/functions"
"$mtui" export -f marks "$tmp/one" >"$tmp/marks" 2>"$tmp/err" </dev/null || bad "export marks: exit $?"
check 'the hit is a mark' grep -qP '\ttrigger\t.*handle_request' "$tmp/marks"
check 'the target runs on' alive "$pid"
check 'unstopped' threads_run "$pid"
check 'no perf is left' no_perf_of "$pid"

# 2. Never over an earlier one.
"$mtui" attach -p "$pid" -t handle_request --batch -o "$tmp/one" >"$tmp/out" 2>"$tmp/err" </dev/null
check 'a second recording into the same directory: exit 1' [ $? -eq 1 ]
check 'nothing on stdout' [ ! -s "$tmp/out" ]
check 'and a sentence' grep -q 'holds a recording already' "$tmp/err"

# 3. A misspelt function.
"$mtui" attach -p "$pid" -t handle_reqest --batch -o "$tmp/none" >"$tmp/out" 2>"$tmp/err" </dev/null
check 'misspelt: exit 1' [ $? -eq 1 ]
check 'the nearest name' grep -q 'handle_request' "$tmp/err"
check 'nothing is left of it' [ ! -e "$tmp/none" ]

# 4. Wrong usage.
"$mtui" attach -p "$pid" --btach >"$tmp/out" 2>"$tmp/err" </dev/null
check 'usage: exit 2' [ $? -eq 2 ]
check 'one line, with the option meant' [ "$(grep -c -e '--batch' "$tmp/err")" = 1 ]
"$mtui" attach -p 1 -r pt --print >"$tmp/out" 2>"$tmp/err" </dev/null || bad "--print: exit $?"
check 'the command is shown' grep -q '^perf record .*--snapshot .*intel_pt/.*/u .*-p 1$' "$tmp/out"
check 'nothing is left out of it' [ ! -s "$tmp/err" ]
"$mtui" attach -p 1 -r pt -t main --slower-than 2ms --hold-off 1h --print >"$tmp/out" 2>"$tmp/err" </dev/null ||
    bad "--print, triggers: exit $?"
check 'still one line' [ "$(grep -c '' "$tmp/out")" = 1 ]
check 'what is left out of it is said' \
    grep -q '^mtui: the command leaves out --trigger, --slower-than, --hold-off: ' "$tmp/err"

# 5. Ring mode: Ctrl-C finishes first. The directory is named after the program.
begin "$mtui" attach -p "$pid" --batch
wait_for 100 grep -q recording "$tmp/err" || bad 'ring mode does not arm'
kill -INT $job
end_of_job 100
check 'SIGINT: exit 0' [ $? -eq 0 ]
dir=$(cat "$tmp/out")
case $dir in
"$tmp/state/mtui/batch_target-$pid-"*) ok ;;
*) bad "directory $dir" ;;
esac
check 'a snapshot at the end' [ -f "$dir/snap-1/perf.data" ]

# 6. JSON lines, two snapshots, a duration.
"$mtui" attach -p "$pid" -t handle_request --max-snapshots 2 --duration 30s --batch --json --json-end -o "$tmp/json" >"$tmp/out" 2>"$tmp/err" </dev/null || bad "--json: exit $?"
check 'two lines' [ "$(grep -c '^{"snapshot":[12],"dir":".*","trigger":"handle_request","tid":[0-9]*,.*}$' "$tmp/out")" = 2 ]
hit=$(awk -F '\t' '$8 == 1 { printf "\"tid\":%s,\"time_ns\":%s,\"pid\":'"$pid"',\"comm\":\"batch_target\",\"arg1\":\"0x%s\",\"arg2\":\"0x%s\",", $2, $1, $5, $6 }' "$tmp/json/hits.tsv")
check 'with what hits.tsv has of the hit' grep -qF ",$hit" "$tmp/out"
check 'no return value at an entry, no duration' sh -c "! grep -q '\"ret\"\|\"duration_ns\"' '$tmp/out'"
check 'the last line has the end' sh -c "tail -n 1 '$tmp/out' | grep -qx '{\"end\":\"snapshots\",\"sentence\":\"2 snapshots taken, as asked for\",\"dir\":\"$tmp/json\",\"snapshots\":2,\"hits\":[0-9]*}'"
check 'and is the only one' [ "$(wc -l <"$tmp/out")" = 3 ]
"$mtui" attach -p "$pid" -t handle_reqest --batch --json --json-end -o "$tmp/none" >"$tmp/out" 2>"$tmp/err" </dev/null
check 'json of a misspelt function' grep -qx '{"end":"not-found","sentence":"no function handle_reqest.*near: .*handle_request.*","snapshots":0}' "$tmp/out"
check 'hits.tsv is in the order of time' [ "$(tail -n +2 "$tmp/json/hits.tsv" | cut -f1 | sort -nc 2>&1)" = '' ]
# How full the ring was: wholly, after waiting for that; hardly, of one that takes minutes to fill.
"$MTUI_BUILD/tests/target_busy" &
busy=$!
"$mtui" attach -p $busy -r sample -t outer --force --not-before full -s 128K --duration 60s --batch --json -o "$tmp/full" >"$tmp/out" 2>"$tmp/err" </dev/null || bad "--not-before full: exit $?"
check 'a full ring' grep -q '"est_fill_percent":100\.0[,}]' "$tmp/out"
"$mtui" attach -p $busy -r sample -t outer --force -s 256M --duration 60s --batch --json -o "$tmp/part" >"$tmp/out" 2>"$tmp/err" </dev/null || bad "a large ring: exit $?"
check 'a ring that has just begun to fill' grep -q '"est_fill_percent":[0-9]\.[0-9][,}]' "$tmp/out"
# Hits that were none of those asked for are said.
"$mtui" attach -p $busy -r sample -t outer --force --not-before 1h --duration 1s --batch -o "$tmp/early" >"$tmp/out" 2>"$tmp/err" </dev/null
check 'all too early: exit 1' [ $? -eq 1 ]
check 'all too early: said' grep -qE '; [0-9.,kM]+ hits came too early \(--not-before\)' "$tmp/err"
"$mtui" attach -p $busy -r sample -t outer --force --hits 1000000000 --duration 1s --batch -o "$tmp/nth" >"$tmp/out" 2>"$tmp/err" </dev/null
check 'never the Nth: said' grep -qE '; [0-9.,kM]+ hits were not the one asked for \(--hits\)' "$tmp/err"
check 'never the Nth: not never hit' sh -c "! grep -q 'never hit' '$tmp/err'"
kill -9 $busy
# Hits that come while the recording is being finished are in no count.
"$mtui" attach -p "$pid" -t handle_request --hits 1000000000 --duration 500ms --batch --json --json-end -o "$tmp/same" >"$tmp/out" 2>"$tmp/err" </dev/null
said=$(sed -n 's/.*; \([0-9,]*\) hits\{0,1\} w[a-z]* not the one.*/\1/p' "$tmp/err" | tr -d ,)
check 'the hits that are said are those in JSON' [ "$said" = "$(sed -n 's/.*"hits":\([0-9]*\).*/\1/p' "$tmp/out")" ]
check 'and those in hits.tsv' [ "$said" = "$(grep -c '^[0-9]' "$tmp/same/hits.tsv")" ]
"$mtui" attach -p "$pid" --mode trigger --duration 300ms --batch -o "$tmp/dur" >"$tmp/out" 2>"$tmp/err" </dev/null
check 'no snapshot in time: exit 1' [ $? -eq 1 ]
"$mtui" attach -p "$pid" --duration 300ms --batch --json -o "$tmp/durj1" >"$tmp/out" 2>"$tmp/err" </dev/null || bad "--json: exit $?"
check 'a line a snapshot, and no other' [ "$(grep -c '^{"snapshot":1,' "$tmp/out") $(wc -l <"$tmp/out")" = '1 1' ]
"$mtui" attach -p "$pid" --duration 300ms --batch --json --json-end -o "$tmp/durj" >"$tmp/out" 2>"$tmp/err" </dev/null || bad "--json without a trigger: exit $?"
check 'of no hit there is no thread nor time' grep -q '^{"snapshot":1,.*"trigger":"end","pid":'"$pid"',"comm":"batch_target","still_running":false,"bytes":' "$tmp/out"
check 'the end: the duration' grep -qx '{"end":"duration","sentence":"stopped after 300 ms, as asked for","dir":".*","snapshots":1}' "$tmp/out"

# 7. run: the program's stdout goes to stderr; a short program is seen whole.
"$mtui" run --batch --mode whole -o "$tmp/run" -- "$tool" quick >"$tmp/out" 2>"$tmp/err" </dev/null || bad "run: exit $?"
check 'stdout is the directory alone' [ "$(cat "$tmp/out")" = "$tmp/run" ]
check 'its output' grep -q serving "$tmp/err"
"$mtui" export -f functions "$tmp/run" >"$tmp/functions" 2>"$tmp/err" </dev/null || bad "export of run: exit $?"
check 'its functions' grep -qP '\thandle_request\t' "$tmp/functions"
"$mtui" run --batch -t handle_request -o "$tmp/run2" -- "$tool" quick >"$tmp/out" 2>"$tmp/err" </dev/null || bad "run -t: exit $?"
check 'a trigger before the program exists' grep -qP '\thandle_request\t' "$tmp/run2/hits.tsv"
"$mtui" run --batch -t handel_request -o "$tmp/run4" -- "$tool" quick >"$tmp/out" 2>"$tmp/err" </dev/null
check 'a function that the program never had: exit 1' [ $? -eq 1 ]
check 'and said, with the nearest name' grep -q 'handel_request was never found: .*near: .*handle_request' "$tmp/err"
"$mtui" run --batch -o "$tmp/run3" -- "$tmp/no-such-program" >"$tmp/out" 2>"$tmp/err" </dev/null
check 'no such program: exit 1' [ $? -eq 1 ]
check 'and it is named' grep -q 'no-such-program' "$tmp/err"

# A user without any privilege may set no probes in files: breakpoints follow when the program is there.
be_user
if user_breaks; then
    $as_user "$tmp/user/mtui" run --batch -t handle_request -o "$tmp/user/run" -- "$tmp/user/batch_target" a >"$tmp/out" 2>"$tmp/err" <"$tmp/in.a" ||
        bad "a user's run -t: exit $?"
    check 'a user: said' grep -q 'hardware breakpoints are set once the program is mapped' "$tmp/err"
    check 'a user: the hit' grep -qP '\thandle_request\t' "$tmp/user/run/hits.tsv"
    kill "$(sed -n 's/^pid = //p' "$tmp/user/run/session.ini")" # it is left running, as batch does
else
    skip 'a user without privileges (no hardware breakpoints, or perf_event_paranoid above 2)'
fi
# A program that starts with another's rights cannot be recorded from its start.
cp "$(command -v id)" "$tmp/user/id" && chmod 4755 "$tmp/user/id"
if [ "$($as_user "$tmp/user/id" -u 2>/dev/null)" = 0 ]; then
    $as_user "$tmp/user/mtui" run --batch -r sample -o "$tmp/user/setuid" -- "$tmp/user/id" >"$tmp/out" 2>"$tmp/err" </dev/null
    check 'a setuid program: exit 1' [ $? -eq 1 ]
    check 'a setuid program: said in one sentence' sh -c "[ \$(wc -l <'$tmp/err') = 1 ] && grep -q 'nothing of .*user/id can be recorded from its start: it is setuid (user 0), .*attach to it' '$tmp/err'"
    check 'and not started' sh -c "! grep -q uid= '$tmp/err' && [ ! -e '$tmp/user/setuid' ]"
else
    skip 'a setuid program (not on this file system)'
fi
# With the capabilities on mtui's file that doctor advises, and none on perf's.
if cp "$tmp/user/mtui" "$tmp/user/mtui+" && setcap cap_sys_admin,cap_perfmon+ep "$tmp/user/mtui+" 2>/dev/null; then
    $as_user "$tmp/user/mtui+" run --batch --hits 15 -t handle_request -o "$tmp/user/caps" -- "$tmp/user/batch_target" quick >"$tmp/out" 2>"$tmp/err" </dev/null ||
        bad "run -t with file capabilities: exit $?"
    check 'file capabilities: the very first hit, by a probe in the file' grep -qP '\thandle_request\t[0-9a-f]+\t0\t' "$tmp/user/caps/hits.tsv"
    check 'file capabilities: what the program made is seen' sh -c "'$mtui' export -f functions '$tmp/user/caps' 2>/dev/null | grep -qP '\thandle_request\t'"
else
    skip 'capabilities on a file (setcap fails here)'
fi
# Root without CAP_SYS_PTRACE may not follow /proc/PID/root: the file is opened by its path.
setpriv --bounding-set=-sys_ptrace "$mtui" attach -p "$pid" -t handle_request --batch -o "$tmp/noptrace" >"$tmp/out" 2>"$tmp/err" </dev/null ||
    bad "attach without CAP_SYS_PTRACE: exit $?"
check 'without CAP_SYS_PTRACE: the hit' grep -qP '\thandle_request\t' "$tmp/noptrace/hits.tsv"
# Where even that is refused, it is said, instead of calling the program stripped.
mkdir -m 700 "$tmp/closed" && cp "$tool" "$tmp/closed/"
mkfifo "$tmp/in.closed"
"$tmp/closed/batch_target" <"$tmp/in.closed" >"$tmp/out.closed" &
closed=$!
targets="$targets $closed"
exec 6>"$tmp/in.closed"
wait_for 100 grep -q serving "$tmp/out.closed"
setpriv --bounding-set=-sys_ptrace,-dac_override,-dac_read_search --reuid=0 sh -c 'chown 65534 "$1" && exec "$2" attach -p "$3" -t handle_request --batch -o "$4"' sh "$tmp/closed" "$mtui" "$closed" "$tmp/none2" >"$tmp/out" 2>"$tmp/err" </dev/null
check 'a file that may not be opened: exit 1' [ $? -eq 1 ]
check 'and said' grep -q 'cannot open the file of .*/closed/batch_target: .*Permission denied' "$tmp/err"

# Exports never overwrite what they read, nor another recording.
data=$(ls "$tmp"/run/snap-*/perf.data) sum=$(cksum <"$data")
for out in "$data" "$tmp/run/session.ini" "$tmp/run/../run/maps/log"; do
    "$mtui" export -f spans -o "$out" "$tmp/run" >"$tmp/out" 2>"$tmp/err" </dev/null
    check "export over $out: exit 1" [ $? -eq 1 ]
    check 'and why' grep -q 'belongs to a recording' "$tmp/err"
done
cp "$data" "$tmp/copy.data"
"$mtui" export -f spans -o "$tmp/copy.data" "$data" 2>"$tmp/err" </dev/null
check 'over another recording' [ $? -eq 1 ]
ln -s copy.data "$tmp/link.data"
"$mtui" export -f branches -o "$tmp/copy.data" "$tmp/link.data" 2>"$tmp/err" </dev/null
check 'over itself by another name' [ $? -eq 1 ]
check 'they are as they were' [ "$(cksum <"$data")$(cksum <"$tmp/copy.data")" = "$sum$sum" ]
"$mtui" export -f spans -o "$tmp/spans" "$data" 2>"$tmp/err" </dev/null || bad "export -o: exit $?"
"$mtui" export -f spans -o "$tmp/spans" "$data" 2>"$tmp/err" </dev/null || bad "export -o again: exit $?"

# A thread of another process is not recorded instead.
"$mtui" attach -p "$pid" --tid $$ --batch -o "$tmp/tid" >"$tmp/out" 2>"$tmp/err" </dev/null
check 'no such thread: exit 1' [ $? -eq 1 ]
check 'and said' grep -q "process $pid has no thread $$" "$tmp/err"
check 'nothing is made' [ ! -e "$tmp/tid" ]

# What is recorded otherwise than asked for is said.
"$mtui" attach -p "$pid" --duration 200ms --freq 1000000 -s 5000 --batch -o "$tmp/odd" >"$tmp/out" 2>"$tmp/err" </dev/null || bad "odd numbers: exit $?"
check 'the ring' grep -q 'rounded up to 8K' "$tmp/err"
[ "$(cat /proc/sys/kernel/perf_event_max_sample_rate)" -ge 1000000 ] ||
    check 'the frequency' grep -q '1000000 samples a second are asked for and the kernel allows' "$tmp/err"

# A full disk behind stdout is said, and where the recording lies.
"$mtui" attach -p "$pid" --duration 300ms --batch -o "$tmp/nostdout" >/dev/full 2>"$tmp/err" </dev/null
check 'stdout is full: exit 1' [ $? -eq 1 ]
check 'and said' grep -q "standard output: No space left on device; .*$tmp/nostdout" "$tmp/err"
"$mtui" attach -p "$pid" --duration 300ms --batch -o "$tmp/closed" >&- 2>"$tmp/err" </dev/null
check 'stdout is closed: exit 1' [ $? -eq 1 ]
check 'and said' grep -q "standard output: Bad file descriptor; .*$tmp/closed" "$tmp/err"
check 'but no file got the words' sh -c "! grep -rlxF '$tmp/closed' '$tmp/closed'"

# The first line that does not get out ends the recording; a pipe without a reader does so as it ends others.
"$mtui" attach -p "$pid" -t handle_request --batch --json --max-snapshots 20 -o "$tmp/fulljson" >/dev/full 2>"$tmp/err" </dev/null
check 'json to a full disk: exit 1' [ $? -eq 1 ]
check 'and said' grep -q "standard output: No space left on device; .*$tmp/fulljson" "$tmp/err"
check 'after few snapshots' [ "$(find "$tmp/fulljson" -name 'snap-*' | wc -l)" -lt 5 ]
check 'finished' grep -q . "$tmp/fulljson/session.ini"
rm -f "$tmp/pipe"
mkfifo "$tmp/pipe"
exec 5<>"$tmp/pipe" 6>"$tmp/pipe" 5<&-
"$mtui" attach -p "$pid" -t handle_request --batch --json --max-snapshots 20 -o "$tmp/nopipe" >&6 2>"$tmp/err" 6>&- </dev/null
check 'no reader: the status' [ $? -eq 141 ]
exec 6>&-
check 'after few snapshots' [ "$(find "$tmp/nopipe" -name 'snap-*' | wc -l)" -lt 5 ]
check 'no word of it' sh -c "! grep -q 'standard output' '$tmp/err'"
check 'no perf is left' no_perf_of "$pid"

# 8. The doctor: columns stand below each other; without perf nothing is promised.
"$mtui" doctor >"$tmp/out" 2>"$tmp/err" </dev/null || bad "doctor: exit $?"
check 'one column of states' [ "$(grep -oE '^.* (present|absent) ' "$tmp/out" | sed -E 's/(present|absent) $//' | awk '{print length}' | sort -u | wc -l)" = 1 ]
check 'what records here' grep -q '^Recording here is done with' "$tmp/out"
MTUI_PERF=$tmp/no-perf "$mtui" doctor >"$tmp/out" 2>"$tmp/err" </dev/null || bad "doctor without perf: exit $?"
check 'no promise without perf' sh -c "! grep -q '^Recording here is done' '$tmp/out'"
check 'but why' grep -q 'Nothing can be recorded.*no-perf' "$tmp/out"

# 9. The demo.
"$mtui" demo -o "$tmp/demo" >"$tmp/out" 2>"$tmp/err" </dev/null || bad "demo: exit $?"
check 'the function table' grep -q 'render_block' "$tmp/out"
check 'where it lies' grep -q "$tmp/demo" "$tmp/out"

exec 7>&-
finish_checks
