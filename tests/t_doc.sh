#!/bin/sh
# The manual page, the README's key tables, installing and uninstalling.
set -u
cd "$(dirname "$0")/.." || exit 1
mtui=$MTUI_BUILD/mtui
passed=0 failed=0 skipped=0
ok() { passed=$((passed + 1)); }
bad() { echo "FAILED: $1" >&2; failed=$((failed + 1)); }
skip() { echo "SKIPPED: $1"; skipped=$((skipped + 1)); }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

"$mtui" --doc man >"$tmp/mtui.1" || bad '--doc man'
# Commands of the table, each once or more.
for word in 'zoom\\-in' 'save\\-screen' 'start\\-stop' 'callers' 'escdelay' 'NO_COLOR' 'Alt\\-1' 'S\\-Tab'; do
    if grep -q -- "$word" "$tmp/mtui.1"; then ok; else bad "the manual page does not have $word"; fi
done
if command -v groff >/dev/null; then
    groff -man -ww -Tutf8 "$tmp/mtui.1" >"$tmp/page" 2>"$tmp/warnings"
    if [ -s "$tmp/warnings" ]; then cat "$tmp/warnings" >&2; bad 'groff complains'; else ok; fi
    if sed 's/\x1b\[[0-9;]*m//g; s/.\x08//g' "$tmp/page" | grep -q 'zoom in at the cursor (:zoom-in)'; then
        ok
    else
        bad 'the page does not read as it should'
    fi
else
    skip 'groff is not installed: the manual page is not formatted'
fi

if tests/readme_keys.sh "$mtui" check; then ok; else bad 'README.md'; fi

# Installed somewhere else, the themes are found there; uninstalled, nothing is left.
make -s install DESTDIR="$tmp/root" prefix=/usr BUILD="$MTUI_BUILD" >/dev/null 2>"$tmp/log" ||
    { cat "$tmp/log" >&2; bad 'make install'; }
for f in bin/mtui share/man/man1/mtui.1 share/mtui/themes/light.theme; do
    if [ -f "$tmp/root/usr/$f" ]; then ok; else bad "make install did not bring $f"; fi
done
if (cd / && HOME=$tmp "$tmp/root/usr/bin/mtui" --check-theme light >"$tmp/check"); then
    ok
else
    bad 'the installed program does not find its themes'
fi
make -s uninstall DESTDIR="$tmp/root" prefix=/usr BUILD="$MTUI_BUILD" >/dev/null 2>&1
left=$(find "$tmp/root" -type f)
if [ -z "$left" ]; then ok; else bad "make uninstall left $left"; fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
