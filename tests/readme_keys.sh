#!/bin/sh
# readme_keys.sh MTUI update|check: the key tables in README.md, between its two marker lines, are those of
# the program. update rewrites them; check fails when they differ.
set -eu
cd "$(dirname "$0")/.."
mtui=$1 mode=$2
[ -f README.md ] && grep -q '^<!-- keys: made by make doc -->$' README.md || {
    echo "README.md has no place for the key tables"
    exit 0
}
new=$(mktemp)
trap 'rm -f "$new" "$new.keys"' EXIT
"$mtui" --doc markdown >"$new.keys"
awk -v keys="$new.keys" '
    /^<!-- end of keys -->$/ {inside = 0}
    !inside {print}
    /^<!-- keys: made by make doc -->$/ {inside = 1; while ((getline line <keys) > 0) print line; print ""}
' README.md >"$new"
if [ "$mode" = update ]; then
    cmp -s "$new" README.md || { cat "$new" >README.md; echo "README.md: key tables rewritten"; }
else
    diff -u README.md "$new" || { echo "README.md is behind the key table: make doc" >&2; exit 1; }
fi
