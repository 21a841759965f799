# shellcheck shell=sh
# For tests of the batch mode, to be sourced from the top of the tree: targets, and who records them.
. tests/lib_check.sh
tool=$MTUI_BUILD/tests/batch_target
start_clock

start_target() { # its pid in $target
    mkfifo "$tmp/in.$1"
    "$tool" <"$tmp/in.$1" >"$tmp/out.$1" &
    target=$!
    eval "exec 7>\"$tmp/in.$1\""
    targets="$targets $target"
    wait_for 100 grep -q serving "$tmp/out.$1"
}
threads_run() { # no thread of the process is stopped
    ! grep -qs '^State:.*[Tt] (' "/proc/$1"/task/*/status
}
# perf processes that attach to the target
perfs_of() { pgrep -f "record .*-p $1( |\$)" || true; }
no_perf_of() { [ -z "$(perfs_of "$1")" ]; }
kill_perf_of() { # as soon as it is there
    wait_for 100 find_perf_of "$1" || bad "no perf records $1"
    # shellcheck disable=SC2086
    [ -z "$perfs" ] || kill -9 $perfs
}
find_perf_of() {
    perfs=$(perfs_of "$1")
    [ -n "$perfs" ]
}
