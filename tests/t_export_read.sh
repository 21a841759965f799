#!/bin/sh
# What other tools get: json and fxt of every kind of recording, read by a reader of its own
# (tests/read_trace.py); parts by time and by thread, checked by hand and against the whole.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/lib_check.sh
export_to() { # FILE EXPORT-OPTIONS...
    out=$1
    shift
    "$mtui" export -o "$out" "$@" 2>"$tmp/err" </dev/null || bad "export $*: exit $?"
}

# ---- other formats ----

readable() { # NAME RECORDING LEAST-SPANS
    export_to "$tmp/functions" -f functions "$2"
    for format in json fxt; do
        export_to "$tmp/trace" -f $format "$2"
        spans=$(python3 tests/read_trace.py $format "$tmp/trace" "$tmp/functions" 2>"$tmp/err" || echo 0)
        check "$1: $format, $spans spans" [ "$spans" -ge "$3" ]
    done
    : >"$tmp/err"
}

cat >"$tmp/two.txt" <<'END'
prog 100/101 [000] 1.000000100:  1 branches:u: tr strt 0 [unknown] ([unknown]) => 401000 a+0x0 (/x)
prog 100/101 [000] 1.000000200:  1 branches:u: call 401005 a+0x5 (/x) => 402000 b+0x0 (/x)
prog 100/102 [001] 1.000000250:  1 branches:u: tr strt 0 [unknown] ([unknown]) => 401000 a+0x0 (/x)
prog 100/101 [000] 1.000000300:  1 branches:u: call 402005 b+0x5 (/x) => 403000 "c\+0x0 (/x)
prog 100/102 [001] 1.000000350:  1 branches:u: call 401005 a+0x5 (/x) => 403000 "c\+0x0 (/x)
prog 100/101 [000] 1.000000400:  1 branches:u: return 403009 "c\+0x9 (/x) => 40200a b+0xa (/x)
prog 100/102 [001] 1.000000450:  1 branches:u: return 403009 "c\+0x9 (/x) => 40100a a+0xa (/x)
prog 100/101 [000] 1.000000500:  1 branches:u: return 40200f b+0xf (/x) => 40100a a+0xa (/x)
prog 100/101 [000] 1.000000600:  1 branches:u: tr end 40100f a+0xf (/x) => 0 [unknown] ([unknown])
prog 100/102 [001] 1.000000650:  1 branches:u: tr end 40100f a+0xf (/x) => 0 [unknown] ([unknown])
END
readable 'text of two threads' "$tmp/two.txt" 5
# A reader that has enough, as head: no word, and the status of a program that SIGPIPE ends.
mkfifo "$tmp/pipe"
exec 5<>"$tmp/pipe" 6>"$tmp/pipe" 5<&- # the reader has gone before there is anything to read
"$mtui" export -f spans "$tmp/two.txt" >&6 2>"$tmp/err" </dev/null
check 'a closed pipe: the status' [ $? -eq 141 ]
exec 6>&-
check 'a closed pipe: no word but of the recording' sh -c "! grep -v ' note: ' '$tmp/err'"
# What is not there is said, whether there is a terminal or not.
mkdir "$tmp/nothing"
for what in nothing missing; do
    "$mtui" open "$tmp/$what" >"$tmp/out" 2>"$tmp/err" </dev/null
    check "open $what: fails" [ $? -eq 1 ]
    check "open $what: says why" grep -qE 'there is no recording in the directory|missing: No such file' "$tmp/err"
done

"$mtui" demo -r step --batch -o "$tmp/step" >/dev/null 2>"$tmp/err" </dev/null
if [ -s "$tmp/step/snap-1/perf.data" ]; then
    readable 'Intel PT' "$tmp/step" 500
else
    skip 'no recording by stepping here'
fi
if perf record -q -o "$tmp/sampled" -e cpu-clock -F 999 -g -- sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done' \
    >/dev/null 2>"$tmp/err" </dev/null; then
    readable 'sampled' "$tmp/sampled" 5
else
    skip 'perf samples nothing here'
fi
shared=../shared/data/perf-script
for text in page_fault c_demo_sampling hello_world_userspace; do
    if [ -f $shared/$text.txt.gz ]; then
        readable "$text" $shared/$text.txt.gz 100
    else
        skip "no $shared/$text.txt.gz"
    fi
done

# ---- parts: by hand ----

same() { # NAME EXPECTED EXPORT-OPTIONS...
    name=$1 expected=$2
    shift 2
    got=$("$mtui" export "$@" "$tmp/two.txt" 2>/dev/null </dev/null | sed 1d | tr '\t\n' ' ;')
    [ "$got" = "$expected" ] || { bad "$name"; echo "    $got"; return; }
    ok
}
c='"c\\'
same 'one thread' "102 0 1000000250 1000000650 e a /x;102 1 1000000350 1000000450 - $c /x;" -f spans --tid 102
same 'its branches' '1000000250 102 1 begin 0 401000;1000000350 102 1 call 401005 403000;1000000450 102 1 return 403009 40100a;1000000650 102 1 end 40100f 0;' \
    -f branches --tid 102
# From 300 up to 450: a has 150 in each thread, of which b and c take all there and 100 here; of b, c takes 100.
same 'a range of functions' "2 300 50 400 400 500 500 a /x;2 200 200 100 100 100 100 $c /x;1 150 50 300 300 300 300 b /x;" \
    -f functions --range 1000000300:1000000450
same 'a range of branches, without its end' '1000000300 101 0 call 402005 403000;1000000350 102 1 call 401005 403000;1000000400 101 0 return 403009 40200a;' \
    -f branches --range 1000000300:1000000450
same 'what only touches a range is not in it' '101 0 1000000100 1000000600 e a /x;102 0 1000000250 1000000650 e a /x;' -f spans --range 1000000500:
same 'from the first event' "101 0 1000000100 1000000600 e a /x;101 1 1000000200 1000000500 - b /x;101 2 1000000300 1000000400 - $c /x;" \
    -f spans --tid 101 --range +150ns:+250ns
same 'both' "1 100 100 400 400 400 400 a /x;" -f functions --tid 102 --range 1000000250:1000000350

# ---- parts: of the whole ----

# RECORDING TID: the middle third of its time, from the whole by awk.
parts() {
    export_to "$tmp/branches" -f branches "$2"
    export_to "$tmp/spans" -f spans "$2"
    from=$(awk -F '\t' 'NR == 2 {a = $1} {b = $1} END {printf "%d", a + (b - a) / 3}' "$tmp/branches")
    to=$(awk -F '\t' 'NR == 2 {a = $1} {b = $1} END {printf "%d", a + (b - a) * 2 / 3}' "$tmp/branches")
    tid=$(awk -F '\t' 'NR == 2 {print $2}' "$tmp/branches")
    export_to "$tmp/part" -f branches --tid "$tid" --range "$from:$to" "$2"
    awk -F '\t' -v f="$from" -v t="$to" -v w="$tid" 'NR == 1 || ($1 >= f && $1 < t && $2 == w)' "$tmp/branches" >"$tmp/want"
    check "$1: branches" cmp -s "$tmp/part" "$tmp/want"
    check "$1: some, not all" [ "$(wc -l <"$tmp/want")" -gt 10 -a "$(wc -l <"$tmp/want")" -lt "$(wc -l <"$tmp/branches")" ]
    export_to "$tmp/part" -f spans --tid "$tid" --range "$from:$to" "$2"
    awk -F '\t' -v f="$from" -v t="$to" -v w="$tid" \
        'NR == 1 || ($1 == w && $3 < t && ($4 > f || ($3 == $4 && $3 >= f)))' "$tmp/spans" >"$tmp/want"
    check "$1: spans" cmp -s "$tmp/part" "$tmp/want"
    export_to "$tmp/part" -f functions --tid "$tid" --range "$from:$to" "$2"
    awk -F '\t' 'NR > 1 {n[$6 "\t" $7]++} END {for (k in n) print n[k] "\t" k}' "$tmp/want" | sort >"$tmp/counts"
    awk -F '\t' 'NR > 1 {print $1 "\t" $8 "\t" $9}' "$tmp/part" | sort >"$tmp/got"
    check "$1: functions" cmp -s "$tmp/got" "$tmp/counts"
    "$mtui" export -f branches --tid 1 "$2" >/dev/null 2>"$tmp/no" </dev/null
    check "$1: a thread that is not there" [ $? -eq 1 ]
    check "$1: is said" grep -q 'no thread 1 in this recording' "$tmp/no"
}
if [ -s "$tmp/step/snap-1/perf.data" ]; then
    parts 'Intel PT' "$tmp/step"
    if perf script -i "$tmp/step/snap-1/perf.data" --itrace=be --ns -F comm,pid,tid,cpu,time,event,flags,ip,addr,sym,symoff,dso \
        >"$tmp/step.txt" 2>/dev/null; then
        parts 'its text' "$tmp/step.txt"
        readable 'its text' "$tmp/step.txt" 500
    else
        skip 'no perf script here'
    fi
fi

finish_checks
