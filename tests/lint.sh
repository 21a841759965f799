#!/bin/sh
# The rules of the architecture that a grep can check: layers, who may include what, sizes, sleeps.
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0
complain() { echo "lint: $1" >&2; bad=1; }
rule() { # MESSAGE PATTERN FILES...: no file may match PATTERN
    message=$1 pattern=$2
    shift 2
    hits=$(grep -nE "$pattern" "$@" /dev/null 2>/dev/null)
    [ -z "$hits" ] || complain "$message
$hits"
}

sources=$(ls core/*/*.[ch] decode/*/*.[ch] tui/*/*.[ch])
code=$(ls core/*/*.c decode/*/*.c tui/*/*.c)
without() { echo "$sources" | grep -v "^$1\$"; }

rule 'core/ may not know decode/ or tui/' '#include "(decode|tui)/' core/*/*
rule 'decode/ may not know tui/' '#include "tui/' decode/*/*
rule 'only tui/term/term.c includes curses' '#include <(n?curses|ncursesw/|term\.h|panel\.h)' $(without tui/term/term.c)
rule 'libipt in core/ belongs into pt_encode.c' '#include <intel-pt\.h>' $(without core/step/pt_encode.c | grep ^core/)
rule 'tests wait for a condition, they do not sleep' '\b(sleep|usleep|nanosleep)\(' $(ls tests/t_*.c tests/lib_*.c 2>/dev/null)
rule 'characters of pictures stand in tui/term/glyph.c' '0x25[0-9a-f]{2}\b' $(without tui/term/glyph.c | grep '^tui/.*c$')
rule 'printing belongs to tui/' '\b(printf|puts|perror)\(' $(echo "$code" | grep -v ^tui/)

# Inside a layer, folders build on one another: each may include itself and those named before it.
order() { # LAYER FOLDERS...
    layer=$1 later=
    shift
    [ "$(ls "$layer" | sort | tr '\n' ' ')" = "$(printf '%s\n' "$@" | sort | tr '\n' ' ')" ] ||
        complain "the folders of $layer/ are not those of the list in tests/lint.sh"
    for folder in $(printf '%s\n' "$@" | tac); do
        [ -z "$later" ] || rule "$layer/$folder may not know what builds on it" "#include \"$layer/($later)/" "$layer/$folder"/*
        later=$folder${later:+|$later}
    done
}
order core base machine symbols trigger record step doctor session
order decode trace perf image pt sample text open export
order tui term ui trace timeline analysis choose cli record app

for f in $sources tests/*.[ch]; do
    n=$(wc -l <"$f")
    [ "$n" -le 1000 ] || complain "$f has $n lines, more than 1000"
    [ "$n" -le 600 ] || echo "lint: note: $f has $n lines; review over 600"
done

# Functions start with '{' in column 0 and end with '}' in column 0.
for f in $code; do
    awk -v f="$f" '/^\{/ {start=NR} /^\}/ {if (start && NR-start > 120) {print f": function of "NR-start" lines at "start; bad=1} start=0} END {exit bad}' "$f" >&2 || bad=1
done

extra=$(git ls-files | cut -d/ -f1 | sort -u | grep -vE '^(Makefile|README\.md|LICENSE|core|decode|tui|tests|themes|\..*)$')
[ -z "$extra" ] || complain "at the top level beyond the agreed layout: $extra"

[ "$bad" -eq 0 ] && echo 'lint: ok'
exit "$bad"
