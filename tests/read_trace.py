"""Reads what mtui exports for other tools, knowing the published formats alone, and holds it against the table of
functions. Needs no module that python3-minimal lacks (json and gzip are among those it does).

    read_trace.py json|fxt FILE FUNCTIONS

FUNCTIONS is `mtui export -f functions` of the same recording. Prints how many spans there were; any mistake in the
file is an exception, and so is a number of calls that differs.
  json: Trace Event Format (Google); events X, B and E, i, M
  fxt:  https://fuchsia.dev/fuchsia-src/reference/tracing/trace-format
"""
import re
import struct
import sys

TOKEN = re.compile(r'[ \t\r\n]*(?:([{}\[\]:,])|"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)"'
                   r'|(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)|(true|false|null))')
ESCAPES = {'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}


def unescape(m):
    return chr(int(m[0][2:], 16)) if m[0][1] == 'u' else ESCAPES[m[0][1]]


class Json:
    """RFC 8259. Numbers stay text, so that no digit is lost."""

    def __init__(self, text):
        self.text, self.at = text, 0
        self.value_read = self.value()
        assert not self.text[self.at:].strip(' \t\r\n'), 'text behind the value'

    def token(self):
        m = TOKEN.match(self.text, self.at)
        assert m, 'no JSON: %r' % self.text[self.at:self.at + 40]
        self.at = m.end()
        return m

    def members(self, closing):
        if self.peek() == closing:
            self.token()
            return
        while True:
            yield
            mark = self.token()[1]
            if mark == closing:
                return
            assert mark == ',', 'a comma is missing'

    def peek(self):
        at = self.at
        mark = self.token()[1]
        self.at = at
        return mark

    def string(self, m):
        raw = m[0].lstrip(' \t\r\n')
        assert raw[0] == '"', 'no string'
        return re.sub(r'\\(u[0-9a-fA-F]{4}|.)', unescape, raw[1:-1])

    def value(self):
        m = self.token()
        if m[1] == '{':
            out = {}
            for _ in self.members('}'):
                key = self.string(self.token())
                assert key not in out, key + ' twice'
                assert self.token()[1] == ':'
                out[key] = self.value()
            return out
        if m[1] == '[':
            return [self.value() for _ in self.members(']')]
        if m[1]:
            raise AssertionError('a value is missing')
        return m[3] or m[4] or self.string(m)


class Threads:
    """Spans of each thread: in order, nested, and how many of each function."""

    def __init__(self):
        self.open, self.begun, self.last, self.calls, self.spans = {}, {}, None, {}, 0
        self.slices, self.named = [], set() # named: (pid, tid)

    def span(self, thread, start, end, name, module):
        assert start <= end, 'a span ends before it starts'
        assert self.last is None or start >= self.last, 'spans are out of order'
        self.last = start
        stack = self.open.setdefault(thread, [])
        while stack and (stack[-1] < start or (stack[-1] == start and end > start)):
            stack.pop()
        assert not stack or end <= stack[-1], '%s at %d reaches out of its caller' % (name, start)
        stack.append(end)
        self.slices.append((start, end - start, thread, True))
        self.count(name, module)

    def begin(self, thread, time, name, module):
        self.begun.setdefault(thread, []).append((time, name))
        self.count(name, module)

    def end(self, thread, time, name):
        start, begun = self.begun[thread].pop()
        assert start <= time and name in ('', begun), 'an end without its begin'

    def count(self, name, module):
        self.spans += 1
        self.calls[name, module] = self.calls.get((name, module), 0) + 1

    def finish(self):
        assert not any(self.begun.values()), 'a begin without its end'
        for thread in {slice[2] for slice in self.slices if slice[3]}:
            assert thread in self.named, 'thread %s has calls and no name' % (thread,)
        self.import_slices()

    def instant(self, thread, time):
        self.slices.append((time, 0, thread, False))

    def import_slices(self):
        """As Perfetto's trace processor does (SliceTracker::MaybeCloseStack): by time, those of one time as they stand
        in the file; what has ended is closed; a slice that begins in an open one and ends behind it is dropped."""
        tracks = {}
        for start, length, thread, _ in sorted(self.slices, key=lambda slice: slice[0]):
            stack = tracks.setdefault(thread, [])
            for open_start, open_length in reversed(stack[:]):
                end = open_start + open_length
                if end < start or (end == start and (open_length or length)):
                    stack.pop()
                else:
                    assert not start < end < start + length, 'Perfetto drops the slice at %d' % start
            stack.append((start, length))


def nanoseconds(micros):
    whole, _, rest = micros.partition('.')
    assert len(rest) == 3 and whole.isdigit() and rest.isdigit(), 'a time like ' + micros
    return int(whole) * 1000 + int(rest)


def read_json(data, threads):
    document = Json(data.decode('utf-8')).value_read
    for e in document['traceEvents']:
        thread = int(e['pid']), int(e['tid'])
        if e['ph'] == 'X':
            start = nanoseconds(e['ts'])
            threads.span(thread, start, start + nanoseconds(e['dur']), e['name'], e['args']['module'])
        elif e['ph'] == 'B':
            threads.begin(thread, nanoseconds(e['ts']), e['name'], e['args']['module'])
        elif e['ph'] == 'E':
            threads.end(thread, nanoseconds(e['ts']), e.get('name', ''))
        elif e['ph'] == 'i':
            assert e['s'] in ('t', 'p', 'g') and nanoseconds(e['ts']) >= 0
            if e['s'] == 't':
                threads.instant(thread, nanoseconds(e['ts']))
        else:
            assert e['ph'] == 'M' and e['name'] in ('process_name', 'thread_name') and 'name' in e['args']
            if e['name'] == 'thread_name':
                threads.named.add(thread)


class Fxt:
    MAGIC = 0x0016547846040010

    def __init__(self, data, threads):
        assert len(data) % 8 == 0, 'no whole words'
        self.words = struct.unpack('<%dQ' % (len(data) // 8), data)
        self.strings, self.threads, self.known = {}, {}, threads
        assert self.words[0] == self.MAGIC
        at = 1
        while at < len(self.words):
            size = self.words[at] >> 4 & 0xfff
            assert 0 < size <= len(self.words) - at, 'a record is cut off'
            self.record(self.words[at] & 15, self.words[at:at + size])
            at += size

    def string(self, ref):
        assert ref < 0x8000, 'inline strings are not used'
        return self.strings[ref] if ref else ''

    def record(self, kind, w):
        h = w[0]
        if kind == 1:
            assert len(w) == 2 and w[1] == 10 ** 9, 'ticks are nanoseconds'
        elif kind == 2:
            length = h >> 32 & 0x7fff
            assert len(w) == 1 + (length + 7) // 8
            raw = struct.pack('<%dQ' % (len(w) - 1), *w[1:])
            assert not raw[length:].strip(b'\0'), 'padding is zero'
            self.strings[h >> 16 & 0x7fff] = raw[:length].decode('utf-8')
        elif kind == 3:
            assert len(w) == 3 and h >> 16 & 0xff
            assert w[1] < 2 ** 32 and w[2] < 2 ** 32, 'Perfetto keeps 32 bits of an id'
            self.threads[h >> 16 & 0xff] = w[1], w[2]
        elif kind == 4:
            self.event(h, w)
        else:
            assert kind == 7 and h >> 16 & 0xff in (1, 2), 'a record of type %d' % kind
            self.string(h >> 24 & 0xffff)
            assert self.arguments(w, 2, h >> 40 & 15) == len(w)
            if h >> 16 & 0xff == 2: # a thread: its process is the argument of that name, a koid
                assert h >> 40 & 15 == 1 and w[2] & 15 == 8 and self.string(w[2] >> 16 & 0xffff) == 'process'
                self.known.named.add((w[3], w[1]))

    def arguments(self, w, at, n):
        for _ in range(n):
            size = w[at] >> 4 & 0xfff
            kind = w[at] & 15
            assert size == {4: 2, 6: 1, 8: 2}[kind], 'an argument of type %d with %d words' % (kind, size)
            self.string(w[at] >> 16 & 0xffff)
            if kind == 6:
                self.string(w[at] >> 32 & 0xffff)
            at += size
        return at

    def event(self, h, w):
        kind, thread = h >> 16 & 15, self.threads[h >> 24 & 0xff]
        module, name = self.string(h >> 32 & 0xffff), self.string(h >> 48)
        end = self.arguments(w, 2, h >> 20 & 15)
        assert name and module and w[1] < 2 ** 63, 'no name, no category, or no time for Perfetto'
        assert end + (kind == 4) == len(w), 'an event of another size than it says'
        if kind == 4:
            self.known.span(thread, w[1], w[-1], name, module)
        elif kind == 2:
            self.known.begin(thread, w[1], name, module)
        elif kind == 3:
            self.known.end(thread, w[1], name)
        else:
            assert kind == 0, 'an event of type %d' % kind
            self.known.instant(thread, w[1])


def plain(field):
    """The text that stands escaped in a table, where it is no UTF-8 as other formats have it."""
    names = {b't': b'\t', b'n': b'\n', b'r': b'\r', b'\\': b'\\'}
    raw = re.sub(rb'\\(?:x([0-9a-f]{2})|(.))', lambda m: bytes.fromhex(m[1].decode()) if m[1] else names[m[2]],
                 field.encode('utf-8'))
    return raw.decode('utf-8', 'replace')


def read_functions(path):
    with open(path, encoding='utf-8') as f:
        lines = f.read().split('\n')
    assert lines[0].split('\t')[0] == 'calls' and lines[-1] == ''
    rows = [line.split('\t') for line in lines[1:-1]]
    return {(plain(row[7]), plain(row[8])): int(row[0]) for row in rows}


def by_name(calls):
    out = {}
    for (name, _), n in calls.items():
        out[name] = out.get(name, 0) + n
    return out


def main(kind, path, functions):
    threads, want = Threads(), read_functions(functions)
    with open(path, 'rb') as f:
        data = f.read()
    if kind == 'json':
        read_json(data, threads)
    else:
        Fxt(data, threads)
    threads.finish()
    got = threads.calls
    if kind == 'fxt': # its category says that a thread was off the CPU, not where
        got, want = by_name(got), by_name(want)
    for f in sorted(set(got) | set(want)):
        assert got.get(f) == want.get(f), '%s: %s calls, of %s' % (f, got.get(f), want.get(f))
    print(threads.spans)


main(*sys.argv[1:])
