#!/bin/sh
# A target in a container: its program and its libraries lie in another mount namespace, its pid is another one
# inside. A trigger, a snapshot, and its names, after it has ended as well.
set -u
cd "$(dirname "$0")/.." || exit 1
: "${MTUI_BUILD:=$PWD/build/release}"
mtui=$MTUI_BUILD/mtui tool=$MTUI_BUILD/tests/batch_target
passed=0 failed=0
tmp=$(mktemp -d) || exit 1
export XDG_STATE_HOME=$tmp/state
target='' outer=''
trap 'kill -9 $target $outer 2>/dev/null; rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
check() { # NAME COMMAND...
    name=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $name"
        sed 's/^/    stderr: /' "$tmp/err" 2>/dev/null
    fi
}
skip() {
    echo "field E1 SKIPPED: $1"
    echo '0 passed, 0 failed, 1 skipped'
    exit 0
}
unshare -m -p -f true 2>/dev/null || skip 'no namespaces can be made here'
perf record -q -e cpu-clock -o "$tmp/try.data" true >/dev/null 2>&1 || skip 'perf does not record here'

mkdir "$tmp/inside"
mkfifo "$tmp/in"
unshare -m -p -f --mount-proc sh -c "mount -t tmpfs none '$tmp/inside' && cp '$tool' '$tmp/inside/prog' &&
    exec '$tmp/inside/prog'" <"$tmp/in" >"$tmp/out" 2>"$tmp/err" &
outer=$!
exec 7>"$tmp/in"
deadline=$(($(date +%s) + 60))
until grep -q serving "$tmp/out"; do
    [ "$(date +%s)" -lt "$deadline" ] || break
    sleep 0.05
done
target=$(pgrep -P "$outer")
check 'it runs' grep -q serving "$tmp/out"
check 'as pid 1 of its own' grep -qE '^NSpid:.*[[:space:]]1$' "/proc/$target/status"
check 'its program is not to be seen from here' [ ! -e "$tmp/inside/prog" ]

"$mtui" attach -p "$target" -t handle_request --batch -o "$tmp/rec" >"$tmp/stdout" 2>"$tmp/err" </dev/null
check 'a trigger and a snapshot' [ -f "$tmp/rec/snap-1/perf.data" ]
check 'hits carry the thread as it is called here' [ "$(awk 'NR > 1 {print $2}' "$tmp/rec/hits.tsv" | sort -u | head -1)" -ge "$target" ]
kill -9 "$target"
wait "$outer" 2>/dev/null
"$mtui" export -f functions "$tmp/rec" >"$tmp/functions" 2>"$tmp/err" </dev/null
check 'names of the program, after its end' grep -qP '\thandle_request\t' "$tmp/functions"
check 'and of its callees' grep -qP '\tcompute\t' "$tmp/functions"
exec 7>&-
[ "$failed" -gt 0 ] || echo 'field E1 a target in another mount and pid namespace'
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
