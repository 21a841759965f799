#!/bin/sh
# Runs every test binary ($MTUI_BUILD/tests/t_*) and every shell test (tests/t_*.sh), one a CPU at a
# time, each with a time limit, and ends with one line "N passed, N failed, N skipped".
#   tests/run.sh [PATTERN]   only those whose name contains PATTERN
# A shell test prints its own line "N passed, N failed, N skipped" last.
set -u
cd "$(dirname "$0")/.." || exit 1
: "${MTUI_BUILD:=$PWD/build/release}"
export MTUI_BUILD
limit=${MTUI_TEST_SECONDS:-480}
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT INT TERM

list() {
    for t in "$MTUI_BUILD"/tests/t_*; do
        name=${t##*/}
        case $name in *.o | *.d) continue ;; esac
        [ -x "$t" ] && [ -f "tests/$name.c" ] && echo "$t"
    done
    for t in tests/t_*.sh; do [ -f "$t" ] && echo "$t"; done
}

if [ "${1:-}" = --one ]; then # OUT TEST: what the pool below runs
    name=${3##*/}
    rm -rf "$out"
    trap - EXIT
    timeout -k 5 "$limit" "$3" >"$2/$name.log" 2>&1 </dev/null
    echo $? >"$2/$name.rc"
    exit 0
fi

started=$(date +%s)
list | grep -E -- "/[^/]*${1:-}[^/]*$" | xargs -P "${MTUI_JOBS:-$(nproc)}" -n 1 tests/run.sh --one "$out"

# Which field reports these tests have shown; without a pattern the whole table must be.
if ls "$out"/*.rc >/dev/null 2>&1; then
    tests/field.sh "$out" "${1:+part}" >"$out/field.out" 2>&1
    echo $? >"$out/field.rc"
    mv "$out/field.out" "$out/field.log"
fi

passed=0 failed=0 skipped=0 bad='' skips=''
for rc in "$out"/*.rc; do
    [ -f "$rc" ] || continue
    name=${rc##*/} name=${name%.rc}
    log=$out/$name.log
    p=0 f=0 s=0
    line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)
    if [ -n "$line" ]; then
        p=$(echo "$line" | sed -E 's/^([0-9]+) passed.*/\1/')
        f=$(echo "$line" | sed -E 's/.* ([0-9]+) failed.*/\1/')
        s=$(echo "$line" | sed -nE 's/.* ([0-9]+) skipped.*/\1/p')
        s=${s:-0}
    else
        p=$(grep -aoE '^\[ +PASSED +\] [0-9]+ test' "$log" | grep -oE '[0-9]+ ' | awk '{n+=$1} END {print n+0}')
        f=$(grep -acE '^\[ +FAILED +\] [A-Za-z_]' "$log")
        s=$(grep -acE '^\[ +SKIPPED +\] [A-Za-z_]' "$log")
        # cmocka lists failures and skips twice: as they come, and in its closing list.
        f=$(((f + 1) / 2)) s=$(((s + 1) / 2))
    fi
    if [ "$(cat "$rc")" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if [ "$(cat "$rc")" -ne 0 ] || [ "$f" -gt 0 ]; then bad="$bad $name"; fi
    [ "$s" -eq 0 ] || skips="$skips
$(grep -aE 'SKIP' "$log" | sort -u | sed "s/^/  $name: /" | head -n 5)"
done

for name in $bad; do
    echo "=== $name (exit $(cat "$out/$name.rc")) ==="
    grep -avE '^\[ (RUN     |      OK) \]' "$out/$name.log" | tail -n 60
done
[ -z "$skips" ] || printf 'Skipped:%s\n' "$skips"
[ -z "$bad" ] || echo "Failed:$bad"
grep -ahE '^(Compared|Field reports shown): ' "$out"/*.log # what the matrices have to say
echo "Took $(($(date +%s) - started)) s."
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
