#!/bin/sh
# Where not everything is allowed: perf events refused by a seccomp filter (tests/confined.c), /proc of another pid
# namespace, a home that may not be read, a trigger that only one of two processes has. What is said names the cause,
# and what needs none of it works.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/lib_batch.sh
confined=$MTUI_BUILD/tests/confined
PERF_EVENT_OPEN=298 PTRACE=101 BPF=321 EPERM=1 ENOSYS=38

said() { grep -q "$1" "$tmp/err"; }
not_said() { ! grep -q "$1" "$tmp/err"; }

start_target a
pid=$target

"$confined" $PERF_EVENT_OPEN $EPERM true 2>/dev/null
if [ $? = 77 ]; then
    skip 'no seccomp filter can be set here'
else
    for code in $EPERM $ENOSYS; do
        # 1. Said: who refuses; not what would not help.
        for what in '' '-r sample' '-r step'; do
            # shellcheck disable=SC2086
            "$confined" $PERF_EVENT_OPEN $code "$mtui" attach -p "$pid" $what -t handle_request --batch \
                -o "$tmp/none" >"$tmp/out" 2>"$tmp/err" </dev/null
            check "attach $what, errno $code: exit 1" [ $? -eq 1 ]
            check "attach $what, errno $code: the filter is named" said 'seccomp'
            check "attach $what, errno $code: not root" not_said 'as root'
        done
        "$confined" $PERF_EVENT_OPEN $code "$mtui" attach -p "$pid" -r step --batch --duration 1s -o "$tmp/none" \
            >"$tmp/out" 2>"$tmp/err" </dev/null
        check "attach -r step without a trigger, errno $code: exit 1" [ $? -eq 1 ]
        check "attach -r step without a trigger, errno $code: what works" said 'only run -r step without triggers'
        check "attach -r step without a trigger, errno $code: nothing is left" [ ! -e "$tmp/none" ]
        "$confined" $PERF_EVENT_OPEN $code "$mtui" doctor >"$tmp/doctor" 2>"$tmp/err" </dev/null
        check "doctor, errno $code" sh -c "tail -1 '$tmp/doctor' | grep -q 'step.*seccomp'"
        # 2. Stepping from the first instruction needs ptrace only: seven calls are seven calls.
        rm -rf "$tmp/step"
        "$confined" $PERF_EVENT_OPEN $code "$mtui" run -r step --mode whole --batch -o "$tmp/step" -- \
            "$confined" calls >"$tmp/out" 2>"$tmp/err" </dev/null
        check "run -r step, errno $code: exit 0" [ $? -eq 0 ]
        "$mtui" export -f functions "$tmp/step" >"$tmp/functions" 2>"$tmp/export" || bad 'export'
        check "run -r step, errno $code: all calls" [ "$(awk -F'\t' '$8 == "leaf" {print $1}' "$tmp/functions")" = 7 ]
        "$confined" $PERF_EVENT_OPEN $code "$mtui" run -r step -t leaf --batch -o "$tmp/none" -- \
            "$confined" calls >"$tmp/out" 2>"$tmp/err" </dev/null
        check "run -r step -t, errno $code: exit 1" [ $? -eq 1 ]
        check "run -r step -t, errno $code: said" said 'seccomp'
    done
    # 3. Many probes without BPF stay for a while after the end; with it, of a newer kernel, they do not.
    rm -rf "$tmp/many"
    many='/^pthread_(rwlock|attr)/'
    "$confined" $BPF $EPERM "$mtui" attach -p "$pid" -t "$many" --batch --duration 1s -o "$tmp/many" \
        >"$tmp/out" 2>"$tmp/err" </dev/null
    check 'probes that are left: said' said 'probes are being taken out of the program.*kernel some [0-9]* s'
    case $(uname -r) in
    [1-5].* | 6.[0-9].* | 6.1[01].*) skip 'BPF links to many places: a newer kernel' ;;
    *)
        rm -rf "$tmp/many"
        "$mtui" attach -p "$pid" -t "$many" --batch --duration 1s -o "$tmp/many" >"$tmp/out" 2>"$tmp/err" </dev/null
        check 'no probes are left: recorded' said 'as asked for'
        check 'no probes are left' not_said 'being taken out'
        ;;
    esac
    rm -rf "$tmp/many"
    "$mtui" attach -p "$pid" -r step -t "$many" --batch --duration 1s -o "$tmp/many" >"$tmp/out" 2>"$tmp/err" </dev/null
    check "step's probes that are left: said" said 'probes are being taken out of the program.*kernel some [0-9]* s'
    check 'and its program runs on, untraced' sh -c "grep -q '^TracerPid:[[:space:]]*0' /proc/$pid/status"
    "$confined" $PTRACE $ENOSYS "$mtui" doctor >"$tmp/doctor" 2>"$tmp/err" </dev/null
    check 'ptrace that is not there is not one that is forbidden' \
        sh -c "grep -A1 '^single' '$tmp/doctor' | grep -q 'not implemented'"
fi

# 4. The numbers of /proc are another namespace's.
if unshare -pf true 2>/dev/null; then
    unshare -pf "$mtui" attach -p "$pid" --batch -o "$tmp/none" >"$tmp/out" 2>"$tmp/err" </dev/null
    check 'foreign /proc, attach: exit 1' [ $? -eq 1 ]
    check 'foreign /proc, attach: said' said 'another pid namespace'
    unshare -pf "$mtui" run --batch -o "$tmp/none" -- true >"$tmp/out" 2>"$tmp/err" </dev/null
    check 'foreign /proc, run: exit 1' [ $? -eq 1 ]
    check 'foreign /proc, run: said' said 'another pid namespace'
else
    skip 'no pid namespace can be made here'
fi

# 5. A home that is closed to us: as if nothing was there.
be_user
mkdir -m 700 "$tmp/closed"
echo quit >"$tmp/keys"
chmod 644 "$tmp/keys"
# shellcheck disable=SC2086
TERM=xterm-256color script -qec "env -u XDG_CONFIG_HOME HOME=$tmp/closed $as_user $tmp/user/mtui --script $tmp/keys" \
    "$tmp/screen" >/dev/null 2>&1 </dev/null
check 'a closed home: starts' [ $? -eq 0 ]
check 'a closed home: nothing is complained of' sh -c "! grep -aq 'Permission denied' '$tmp/screen'"

# 6. Two processes, one of which has the function.
sleep 600 &
other=$!
targets="$targets $other"
for pair in "$pid,$other" "$other,$pid"; do
    rm -rf "$tmp/two"
    "$mtui" attach -p "$pair" -t handle_request --batch -o "$tmp/two" >"$tmp/out" 2>"$tmp/err" </dev/null
    check "one of $pair has it: exit 0" [ $? -eq 0 ]
    check "one of $pair has it: a snapshot" [ -s "$tmp/two/snap-1/perf.data" ]
    check "one of $pair has it: who lacks it" said "process $other has no such place"
    check "one of $pair has it: not who has it" not_said "process $pid has no such place"
done
"$mtui" attach -p "$pid,$other" -t handle_request -t nobody_has_this --batch -o "$tmp/none" >"$tmp/out" 2>"$tmp/err" </dev/null
check 'nobody has it: exit 1' [ $? -eq 1 ]
check 'nobody has it: said' said 'nobody_has_this.*none of the 2 processes has it'

# 7. How the program ended.
"$mtui" run -t 'leaf if arg1 == 99' --batch -o "$tmp/crash" -- "$confined" crash >"$tmp/out" 2>"$tmp/err" </dev/null
check 'a crash: said' said 'the traced program was killed by SIGSEGV'
finish_checks
