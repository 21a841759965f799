# shellcheck shell=sh
# For shell tests, to be sourced from the top of the tree: . tests/lib_check.sh
# Gives $mtui, a directory $tmp that goes at the end (with the processes in $targets), counts, and a clock.
: "${MTUI_BUILD:=$PWD/build/release}"
# shellcheck disable=SC2034 # used by the tests
mtui=$MTUI_BUILD/mtui
tmp=$(mktemp -d) || exit 1
export XDG_STATE_HOME="$tmp/state"
passed=0 failed=0 skipped=0 targets=''

clean() {
    for p in $targets; do kill -9 "$p" 2>/dev/null; done
    rm -rf "$tmp"
}
trap clean EXIT
trap 'exit 1' INT TERM

ok() { passed=$((passed + 1)); }
bad() { # with what was said on $tmp/err
    failed=$((failed + 1))
    echo "FAILED: $*"
    [ ! -s "$tmp/err" ] || sed 's/^/    stderr: /' "$tmp/err"
}
check() { # NAME COMMAND...
    name=$1
    shift
    if "$@"; then ok; else bad "$name"; fi
}
skip() {
    skipped=$((skipped + 1))
    echo "SKIPPED: $*"
}
finish_checks() { # the last line, and the exit status
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}

# A clock to wait on without sleep(1) in a busy loop: a line every 20 ms.
start_clock() {
    mkfifo "$tmp/tick"
    (while :; do echo; sleep 0.02; done >"$tmp/tick") 2>/dev/null &
    targets="$targets $!"
    exec 8<"$tmp/tick"
}
wait_for() { # SECONDS COMMAND...: until it succeeds
    deadline=$(($(date +%s) + $1))
    shift
    until "$@" 2>/dev/null; do
        [ "$(date +%s)" -lt "$deadline" ] || return 1
        read -r _ <"$tmp/tick"
    done
}

alive() { kill -0 "$1" 2>/dev/null && [ "$(sed 's/.*) \(.\).*/\1/' "/proc/$1/stat")" != Z ]; }
gone() { ! alive "$1"; }
# A job, its pid in $job. What it says goes to $tmp/out and $tmp/err, in which nothing of an earlier one is left.
begin() { # COMMAND...
    : >"$tmp/out"
    : >"$tmp/err"
    "$@" >"$tmp/out" 2>"$tmp/err" </dev/null &
    job=$!
    targets="$targets $job"
}
end_of_job() { # SECONDS: its exit status; killed when it takes longer
    wait_for "$1" gone "$job" || {
        bad "$job does not end"
        kill -9 "$job"
    }
    targets=${targets% "$job"} # its number may be another's
    wait "$job"
}

be_user() { # $as_user runs $tmp/user/mtui, or $tool there, as a user without any privilege
    chmod 711 "$tmp" && mkdir -m 777 "$tmp/user" && cp "$mtui" "$tool" "$tmp/user/"
    as_user="setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all env XDG_STATE_HOME=$tmp/user"
}
user_breaks() { # hardware breakpoints work for it
    [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ] &&
        $as_user "$tmp/user/mtui" doctor 2>/dev/null | grep -q '^hardware breakpoints *present'
}
