#!/bin/sh
# A recording from another machine, user and kernel, without its files (../shared/data/perf-data, from
# google/perf_data_converter): its threads and mappings are perf's, everything perf finds in the trace is found,
# what is missing is said, and nothing of this machine is taken for it.
set -u
cd "$(dirname "$0")/.." || exit 1
: "${MTUI_BUILD:=$PWD/build/release}"
mtui=$MTUI_BUILD/mtui
data=../shared/data/perf-data/skylake-user-kernel
if [ ! -f $data.perf.data ]; then
    echo "SKIPPED: no $data.perf.data"
    echo '0 passed, 0 failed, 1 skipped'
    exit 0
fi
tmp=$(mktemp -d) || exit 1
passed=0 failed=0 skipped=0
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
check() { # NAME COMMAND...
    name=$1
    shift
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $name"; fi
}
# Every line of the one is in the other.
within() { [ -s "$1" ] && [ -z "$(comm -23 "$1" "$2" | tee "$tmp/more")" ] || { sed 's/^/    only one has: /' "$tmp/more"; false; }; }

for file in $data.perf.data $data.piped.perf.data; do
    name=${file##*kernel.}
    for format in branches gaps functions spans json; do
        "$mtui" export -f $format -o "$tmp/$format" $file 2>"$tmp/notes" </dev/null || check "$name: export $format" false
    done

    # No name but those that say that there is none: the kernel's are not this machine's either.
    awk -F '\t' 'NR > 1 && $8 !~ /^\[(unknown|untraced|syscall)\]$/' "$tmp/functions" >"$tmp/named"
    check "$name: no names from elsewhere" [ ! -s "$tmp/named" ]
    # Files that are not here and the kernel, each once, with what can be done.
    check "$name: the kernel is missing" grep -q 'the code of the kernel is not at hand' "$tmp/notes"
    check "$name: so is ld.so" grep -q 'the code of /lib64/ld-2.23.so is not at hand: .* places: no symbols: open' "$tmp/notes"
    check "$name: once" [ "$(grep -c 'code of /lib64/ld-2.23.so' "$tmp/notes")" = 1 ]
    check "$name: --symfs is named" grep -q -e '--symfs DIR' "$tmp/notes"
    check "$name: the thread by its name" grep -q '"thread_name","pid":3[0-9]*,"tid":3[0-9]*,"args":{"name":"echo"' "$tmp/json"
    # Nothing is decoded without code: a place where tracing goes on, and an error.
    check "$name: no calls" sh -c "! cut -f 4 '$tmp/branches' | grep -qE '^(call|return|jump|cond)$'"

    # perf's mappings are those that gaps and functions lie in. (It reads the pipe layout only to a part.)
    perf script -i $file --show-mmap-events 2>/dev/null | sed -n 's/.*PERF_RECORD_MMAP2* .*: [-rwxps]* //p' | sort -u >"$tmp/perf.maps"
    awk -F '\t' 'NR > 1 {sub(/: .*/, "", $6); print $6}' "$tmp/gaps" | grep '^/' | sort -u >"$tmp/our.maps"
    awk -F '\t' 'NR > 1 && $9 ~ /^\// {print $9}' "$tmp/functions" | sort -u >>"$tmp/our.maps"
    sort -u -o "$tmp/our.maps" "$tmp/our.maps"
    [ "$name" != perf.data ] || check "$name: mappings" within "$tmp/our.maps" "$tmp/perf.maps"
done

# What perf finds in the file layout.
file=$data.perf.data
"$mtui" export -f branches -o "$tmp/branches" $file 2>/dev/null </dev/null
perf script -i $file --itrace=be -F tid,time,event,flags,ip,addr 2>/dev/null >"$tmp/perf"
grep 'tr strt' "$tmp/perf" | awk '{print $1, $NF}' | sort -u >"$tmp/perf.begins"
awk -F '\t' '$4 == "begin" {print $2, $6}' "$tmp/branches" | sort -u >"$tmp/our.begins"
# After an error perf also starts where a FUP says that the program was, before it says where that goes on.
perf script -D -i $file 2>/dev/null | sed -n 's/.* FUP 0x\([0-9a-f]*\)$/\1/p' | sort -u >"$tmp/fups"
comm -23 "$tmp/perf.begins" "$tmp/our.begins" | sed 's/.* //; s/^ffff\(............\)$/\1/' | sort -u >"$tmp/others"
check 'where tracing begins for perf, it begins here' [ -z "$(comm -23 "$tmp/others" "$tmp/fups")" ]
check 'nearly always at the same places' [ "$(wc -l <"$tmp/perf.begins")" -gt 100 -a "$(wc -l <"$tmp/others")" -lt 10 ]
awk '/branches/ {print $1}' "$tmp/perf" | sort -u >"$tmp/perf.tids"
awk -F '\t' 'NR > 1 {print $2}' "$tmp/branches" | sort -u >"$tmp/our.tids"
check 'threads' cmp -s "$tmp/perf.tids" "$tmp/our.tids"
awk '/hw int/ {print $1, $(NF-2)}' "$tmp/perf" | sort -u >"$tmp/perf.interrupts"
awk -F '\t' '$4 == "interrupt" {print $2, $5}' "$tmp/branches" | sort -u >"$tmp/our.interrupts"
check 'interrupts of user code' within "$tmp/perf.interrupts" "$tmp/our.interrupts"

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
