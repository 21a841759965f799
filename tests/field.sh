#!/bin/sh
# Field reports: which rows of tests/field.txt the tests that ran have shown.
#   tests/field.sh LOGS [part]    LOGS holds a NAME.log of every test that ran; part: not all did
# A row is shown when a test named after it passed: a cmocka function field_ID_… (several ids:
# field_A1_A8_…), or a line "field ID …" of a shell test ("field ID SKIPPED: why" where it cannot run).
# Prints the rows shown, and fails when the table and the run do not agree.
set -u
cd "$(dirname "$0")" || exit 1
grep -aE '^(\[ +(OK|FAILED|SKIPPED) +\] field(_[A-H][0-9]+)+_|field [A-H][0-9]+ )' "$1"/*.log /dev/null |
    sed -E 's/^.*\/([^:]*)\.log:/\1 /' |
    LC_ALL=C awk -v part="${2:-}" -v logs="$1" '
function wrong(text) { print "FAILED: " text; failed++ }
function has_log(test,  line, there) {
    there = (getline line < (logs "/" test ".log")) >= 0
    close(logs "/" test ".log")
    return there
}
FILENAME == "field.txt" {
    if ($0 !~ /^[A-H][0-9]+ /)
        next
    if ($1 in tests)
        wrong($1 " stands twice in the table")
    rows[++n] = $1
    tests[$1] = $2
    next
}
{ # TEST [ RESULT ] field_A1_A8_words, or TEST field A1 words
    if ($2 == "field") {
        result = $4 == "SKIPPED:" ? "SKIPPED" : "OK"
        k = split($3, ids, "_")
    } else {
        result = $3
        k = split(substr($5, 7), ids, "_")
    }
    for (i = 1; i <= k && ids[i] ~ /^[A-H][0-9]+$/; i++)
        seen[ids[i], $1, result] = seen[ids[i], "", result] = 1
    for (i = 1; i <= k && ids[i] ~ /^[A-H][0-9]+$/; i++) {
        if (!(ids[i] in tests))
            wrong($1 " shows " ids[i] ", which the table does not have")
        else if (("," tests[ids[i]] ",") !~ ("," $1 ","))
            wrong($1 " shows " ids[i] ", but the table says " tests[ids[i]])
    }
}
END {
    all = part == ""
    for (r = 1; r <= n; r++) {
        id = rows[r]
        if (tests[id] == "-") {
            absent = absent " " id
            continue
        }
        k = split(tests[id], names, ",")
        ran = 0
        for (i = 1; i <= k; i++) {
            there = has_log(names[i])
            ran += there
            if (there && !((id, names[i], "OK") in seen) && !((id, names[i], "SKIPPED") in seen))
                wrong(id " is not shown by " names[i])
            if (!there && all)
                wrong(id ": there is no test " names[i])
        }
        if (!ran)
            continue
        if (((id, "", "OK") in seen) && !((id, "", "FAILED") in seen)) {
            shown = shown " " id
            m++
        } else {
            skipped = skipped " " id
        }
    }
    if (m || all) {
        printf "Field reports shown: %d of %d (%s)", m, n, substr(shown, 2)
        if (all)
            printf "; not here:%s (why: tests/field.txt)", absent == "" ? " none" : absent
        print skipped == "" ? "" : "; skipped or failed:" skipped
    }
    print !failed + 0 " passed, " failed + 0 " failed, 0 skipped"
    exit failed > 0
}' field.txt -
