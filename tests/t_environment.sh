#!/bin/sh
# The screens under LC_ALL=C, NO_COLOR=1 and TERM=vt100: their tests, which must not depend on the environment, and
# the real program on a pty, which must heed it.
set -u
cd "$(dirname "$0")/.." || exit 1
mtui=$MTUI_BUILD/mtui
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() { echo "FAILED: $1" >&2; failed=$((failed + 1)); }
skip() { echo "SKIPPED: $1"; skipped=$((skipped + 1)); }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset LC_ALL LANG NO_COLOR COLUMNS LINES

for setting in LC_ALL=C NO_COLOR=1 TERM=vt100; do
    for name in ui help list timeline tracescreens events surface theme viewport flame term keys process_view; do
        test=$MTUI_BUILD/tests/t_$name
        [ -x "$test" ] || continue
        if env TERM=xterm-256color "$setting" "$test" >"$tmp/log" 2>&1 </dev/null; then
            ok
        else
            tail -20 "$tmp/log" >&2
            bad "t_$name with $setting"
        fi
    done
done

# A hundred samples, ten in main alone and ten in a call below it in turns, as perf script prints them. The name
# that is called is "g_<lozenge>": no ASCII.
lozenge=$(printf '\342\227\212')
i=0
while [ $i -lt 100 ]; do
    printf 'prog    42/42    1.%03d000000:    1000000 cpu-clock:u: \n' $i
    [ $((i / 10 % 2)) = 1 ] && printf '\t          401200 g_%s+0x0 (/bin/prog)\n' "$lozenge"
    printf '\t          401110 main+0x10 (/bin/prog)\n\n'
    i=$((i + 1))
done >"$tmp/trace.txt"
cat >"$tmp/keys" <<SCRIPT
wait screen timeline
wait text main 20s
goto 12ms
zoom-in
search g_
functions
wait text g_ 20s
events
wait text call 20s
timeline
save-screen $tmp/screen
quit
SCRIPT

# Runs it in an environment; what was sent to the terminal is in $tmp/sent.
run() {
    rm -f "$tmp/screen"
    env HOME="$tmp" XDG_CONFIG_HOME="$tmp" XDG_STATE_HOME="$tmp" TERM=xterm-256color "$@" \
        script -qec "stty rows 30 cols 100; exec '$mtui' open --script '$tmp/keys' '$tmp/trace.txt'" "$tmp/sent" \
        >/dev/null 2>&1 </dev/null
    rc=$?
    if [ "$rc" = 0 ] && grep -q 'Search /g_/' "$tmp/screen"; then ok; else bad "open with $* (status $rc)"; fi
}
sends() { LC_ALL=C grep -q "$1" "$tmp/sent"; }
escape=$(printf '\033')

if command -v script >/dev/null; then
    run LC_ALL=C.UTF-8
    if grep -q "$lozenge" "$tmp/screen"; then ok; else bad 'a name in UTF-8 is not shown'; fi
    if sends "$escape\[[0-9;]*m"; then ok; else bad 'no colours at all'; fi
    run LC_ALL=C
    if cat "$tmp/screen" "$tmp/sent" | LC_ALL=C grep -q '[^ -~[:cntrl:]]'; then
        bad 'LC_ALL=C: bytes above 127 were sent'
    else
        ok
    fi
    run LC_ALL=C.UTF-8 NO_COLOR=1
    if sends "$escape\[\(3[0-8]\|4[0-8]\|9[0-7]\|10[0-7]\)[;0-9]*m" ; then bad 'NO_COLOR=1: colours were sent'; else ok; fi
    run LC_ALL=C.UTF-8 TERM=vt100
    if sends "$escape\[[0-9;]*\(38\|48\);5" || sends "$escape\[?1000h"; then
        bad 'TERM=vt100: colours or the mouse were asked for'
    else
        ok
    fi
else
    skip 'script (bsdutils) is not installed: the program was not run on a pty'
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
