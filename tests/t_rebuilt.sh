#!/bin/sh
# A program that is built anew at its path after it was recorded: the file there now is not decoded.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/lib_check.sh
start_clock

if [ "$(id -u)" -ne 0 ]; then
    skip 'uprobes need root or CAP_PERFMON'
    finish_checks
    exit
fi

build() { # PATH MORE-CODE LINKER-OPTIONS...
    out=$1 more=$2
    shift 2
    printf '#include <stdlib.h>\n%s\nint leaf(int n)\n{\n    return n * 3 + 1;\n}\nint work(int n)\n{\n    int sum = 0;\n    for (int i = 0; i < n; i++)\n        sum += leaf(i) & 1 ? leaf(sum) : i;\n    return sum + atoi("12") + rand();\n}\nint main(int argc, char **argv)\n{\n    (void)argv;\n    return work(argc * 20) < 0;\n}\n' "$more" >"$tmp/program.c"
    rm -f "$out" # as linkers do: what ran is another inode
    gcc -O1 -fno-inline -fno-ipa-cp -o "$out" "$@" "$tmp/program.c"
}
longer='int before(int n)
{
    return n % 7 ? n : -n;
}
int (*other)(int) = before;'
functions() { # OPTIONS...: of a recording, into $tmp/functions; what was said, into $tmp/err
    "$mtui" export -f functions "$@" >"$tmp/functions" 2>"$tmp/err" </dev/null
}
record() { # PROGRAM DIRECTORY
    "$mtui" run -r step -t work --batch -o "$2" -- "$1" >/dev/null 2>"$tmp/err" </dev/null || bad "record $1: exit $?"
}
saw() { grep -qP "\t$1\t" "$tmp/functions" || grep -qP "^$1\t" "$tmp/functions"; }
saw_not() { ! saw "$1"; }

# Without a build-id, size and time of the last change tell.
build "$tmp/nobid" '' -Wl,--build-id=none || bad 'gcc'
cp -p "$tmp/nobid" "$tmp/nobid.ran"
record "$tmp/nobid" "$tmp/nb"
functions "$tmp/nb"
check 'the file that ran is used' saw leaf
check 'and nothing is said against it' sh -c "! grep -q 'not the file' '$tmp/err'"
build "$tmp/nobid" "$longer" -Wl,--build-id=none || bad 'gcc'
functions "$tmp/nb"
check 'another one is not' saw_not leaf
check 'nor are its functions shown' saw_not before
check 'said, with the file first' grep -q "$tmp/nobid is not the file that ran: it \(has\|was\)" "$tmp/err"
check 'its code is missing' sh -c "'$mtui' export -f gaps '$tmp/nb' 2>/dev/null | grep -q 'no-image.*is not the file that ran'"
"$mtui" export -f gaps "$tmp/nb" >"$tmp/gaps" 2>/dev/null </dev/null
check 'libc fits, only its callers are in the hole' grep -q 'error.*its call lies in a gap before: where it returns to is not known' "$tmp/gaps"
check 'so nothing is said against libc' sh -c "! grep -q 'does not match' '$tmp/gaps'"
cp "$tmp/nobid.ran" "$tmp/nobid"
functions "$tmp/nb"
check 'the same size, another time' grep -q 'is not the file that ran: it was changed at' "$tmp/err"
functions --symfs / "$tmp/nb"
check 'unless it is called a copy' saw leaf
mkdir -p "$tmp/fs$tmp"
cp "$tmp/nobid.ran" "$tmp/fs$tmp/nobid"
functions --symfs "$tmp/fs" "$tmp/nb"
check 'a copy below --symfs may have another time' saw leaf
build "$tmp/fs$tmp/nobid" "$longer$(printf '\nint more[5000] = {1};')" -Wl,--build-id=none || bad 'gcc'
functions --symfs "$tmp/fs" "$tmp/nb"
check 'but no other size' grep -q "fs$tmp/nobid is not the file that ran: it has" "$tmp/err"
cp -p "$tmp/nobid.ran" "$tmp/nobid"
functions "$tmp/nb"
check 'with size and time as they were it is used again' saw leaf

# With one, perf.data alone tells.
build "$tmp/withid" '' -Wl,--build-id=sha1 || bad 'gcc'
cp -p "$tmp/withid" "$tmp/withid.ran"
record "$tmp/withid" "$tmp/id"
cp "$tmp/id/snap-1/perf.data" "$tmp/alone.data"
id=$(readelf -n "$tmp/withid" | sed -n 's/.*Build ID: //p')
functions "$tmp/alone.data"
check 'perf.data alone: decoded' saw leaf
check 'it has a build-id' [ ${#id} -eq 40 ]
if command -v perf >/dev/null; then
    perf buildid-list -i "$tmp/alone.data" >"$tmp/ids" 2>&1
    check 'perf lists it' grep -q "^$id $tmp/withid\$" "$tmp/ids"
    perf script -i "$tmp/alone.data" --itrace=be -F ip,sym >"$tmp/perf" 2>&1
    check 'perf decodes it' grep -q 'leaf' "$tmp/perf"
    check 'without an error' sh -c "! grep -qi 'error' '$tmp/perf'"
else
    skip 'perf is not there'
fi
build "$tmp/withid" "$longer" -Wl,--build-id=sha1 || bad 'gcc'
functions "$tmp/alone.data"
check 'built anew: not decoded' saw_not leaf
check 'nor are its functions shown' saw_not before
check 'said, with the build-ids' grep -q "$tmp/withid is not the file that ran: its build-id is .*, recorded was $(echo "$id" | cut -c1-12)" "$tmp/err"
finish_checks
