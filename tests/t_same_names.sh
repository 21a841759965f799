#!/bin/sh
# Functions of one name in one file, as `static` makes them: each is one of its own, and what the compiler has moved out
# of it is nobody else's.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/lib_check.sh
start_clock

if [ "$(id -u)" -ne 0 ]; then
    skip 'uprobes need root or CAP_PERFMON'
    finish_checks
    exit
fi

source_of() { # FUNCTION CALLS: a file with a parse of its own, every second call of which takes the unlikely way
    cat <<C
#include <stdlib.h>
#include <stdio.h>
extern volatile int sink;
__attribute__((noinline, cold)) static void report(int x) { sink += x; }
__attribute__((noinline, noclone)) static int parse(int x)
{
    if (__builtin_expect(x & 1, 0)) { report(x); if (sink < 0) abort(); sink += $2; report(sink); }
    return x + $2;
}
int $1(void) { int s = 0; for (int i = 0; i < $2; i++) s += parse(i); return s; }
C
}
source_of config 4 >"$tmp/config.c"
source_of net 6 >"$tmp/net.c"
cat >"$tmp/main.c" <<'C'
volatile int sink;
int config(void), net(void);
__attribute__((noinline)) int work(void) { return config() + net() + config(); }
int main(void) { return work() == 0; }
C
(cd "$tmp" && cc -O2 -g -o two main.c config.c net.c) || bad 'the program is built'
check 'two functions of that name' [ "$(nm "$tmp/two" | grep -c ' t parse$')" -eq 2 ]
"$mtui" run --batch -r step -t work -o "$tmp/rec" -- "$tmp/two" >/dev/null 2>"$tmp/err" || bad 'recorded'
"$mtui" export -f functions "$tmp/rec" 2>/dev/null >"$tmp/functions"
"$mtui" export -f spans "$tmp/rec" 2>/dev/null >"$tmp/spans"
calls() { awk -F '\t' -v name="$1" '$(NF - 1) == name { print $1 }' "$tmp/functions" | sort -n | tr '\n' ' '; }
check 'the calls of each' [ "$(calls parse)" = '6 8 ' ]
check 'of their report' [ "$(calls report)" = '6 8 ' ]
if nm "$tmp/two" | grep -q ' t parse.cold$'; then # of whose parse, nobody can tell
    check 'a part is no call' [ -z "$(awk -F '\t' '$6 ~ /cold/' "$tmp/spans")" ]
fi
# Each is called by its own file's function, and by no other: what stands above a span is the last one a depth less.
callers() {
    awk -F '\t' '{ at[$2] = $6 } $6 == "parse" { print at[$2 - 1] }' "$tmp/spans" | sort | uniq -c | awk '{ print $2, $1 }' | tr '\n' ' '
}
check 'called by' [ "$(callers)" = 'config 8 net 6 ' ]
finish_checks
