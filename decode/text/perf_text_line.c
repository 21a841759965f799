#include "decode/text/perf_text_line.h"

#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static const char *token_end(const char *s, const char *end)
{
    while (s < end && !is_blank(*s))
        s++;
    return s;
}

static bool starts_with(const char *s, const char *end, const char *word)
{
    size_t len = strlen(word);
    return (size_t)(end - s) >= len && memcmp(s, word, len) == 0;
}

static struct perf_text_str trimmed(const char *s, const char *end)
{
    s = perf_text_skip_blanks(s, end);
    while (end > s && is_blank(end[-1]))
        end--;
    return (struct perf_text_str){s, (size_t)(end - s)};
}

/* At most 16 hex digits that fill a whole token. */
static bool parse_hex_token(const char **s, const char *end, uint64_t *value)
{
    const char *p = *s;
    uint64_t v = 0;
    while (p < end && hex_value(*p) >= 0 && p - *s < 17)
        v = v << 4 | (uint64_t)hex_value(*p++);
    if (p == *s || p - *s > 16 || (p < end && !is_blank(*p)))
        return false;
    *s = p;
    *value = v;
    return true;
}

static bool parse_decimal(const char **s, const char *end, uint64_t *value)
{
    const char *p = *s;
    uint64_t v = 0;
    for (; p < end && is_digit(*p); p++)
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return false;
    if (p == *s)
        return false;
    *s = p;
    *value = v;
    return true;
}

static bool parse_pid(const char **s, const char *end, pid_t *out)
{
    const char *p = *s;
    bool minus = p < end && *p == '-';
    uint64_t v = 0;
    p += minus;
    if (!parse_decimal(&p, end, &v) || v > INT32_MAX)
        return false;
    *out = minus ? (pid_t) - (int64_t)v : (pid_t)v;
    *s = p;
    return true;
}

/* "seconds.fraction", at most nine digits of fraction. */
static bool parse_time(const char **s, const char *end, uint64_t *ns)
{
    const char *p = *s;
    uint64_t seconds = 0, fraction = 0;
    if (!parse_decimal(&p, end, &seconds) || p >= end || *p != '.')
        return false;
    const char *digits = ++p;
    if (!parse_decimal(&p, end, &fraction) || p - digits > 9)
        return false;
    for (ptrdiff_t i = p - digits; i < 9; i++)
        fraction *= 10;
    if (__builtin_mul_overflow(seconds, UINT64_C(1000000000), &seconds) ||
        __builtin_add_overflow(seconds, fraction, ns))
        return false;
    *s = p;
    return true;
}

/* "time:" then a blank or the end. */
static bool parse_time_token(const char **s, const char *end, uint64_t *ns)
{
    const char *p = *s;
    if (!parse_time(&p, end, ns) || p >= end || *p != ':' || (p + 1 < end && !is_blank(p[1])))
        return false;
    *s = p + 1;
    return true;
}

/* "pid/tid" or "tid", at the start of a token. */
static bool parse_ids(const char **s, const char *end, struct perf_text_event *ev)
{
    const char *p = *s;
    if (!parse_pid(&p, end, &ev->pid))
        return false;
    ev->tid = ev->pid;
    if (p < end && *p == '/') {
        p++;
        if (!parse_pid(&p, end, &ev->tid))
            return false;
    }
    if (p < end && !is_blank(*p))
        return false;
    *s = perf_text_skip_blanks(p, end);
    return true;
}

/* "[003]" and the letters of -F misc, where printed; "[-01]": not known. */
static const char *parse_cpu(const char *s, const char *end, struct perf_text_event *ev)
{
    pid_t cpu = -1;
    const char *p = s + 1;
    if (s < end && *s == '[' && parse_pid(&p, end, &cpu) && p < end && *p == ']') {
        ev->cpu = cpu < 0 ? -1 : cpu;
        s = perf_text_skip_blanks(p + 1, end);
    }
    p = token_end(s, end);
    bool letters = p > s && p - s <= 4;
    for (const char *c = s; letters && c < p; c++)
        letters = (*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z');
    return letters ? perf_text_skip_blanks(p, end) : s;
}

/* Without a time: ids, at most a period, and then something like "cycles:". */
static bool event_follows(const char *s, const char *end)
{
    uint64_t period = 0;
    const char *p = s;
    if (parse_decimal(&p, end, &period) && p < end && is_blank(*p))
        s = perf_text_skip_blanks(p, end);
    p = token_end(s, end);
    return p > s + 1 && p[-1] == ':' && !is_digit(*s);
}

static bool stamp_at(const char *p, const char *end, bool want_time, struct perf_text_event *ev,
                     const char **rest)
{
    ev->cpu = -1;
    if (!parse_ids(&p, end, ev))
        return false;
    const char *after_cpu = parse_cpu(p, end, ev);
    if (want_time) {
        ev->has_time = parse_time_token(&after_cpu, end, &ev->time_ns);
        *rest = after_cpu;
        return ev->has_time;
    }
    *rest = ev->cpu >= 0 ? after_cpu : p;
    return event_follows(*rest, end);
}

bool perf_text_parse_stamp(const char *s, const char *end, struct perf_text_event *ev,
                           const char **rest)
{
    /* A command's name may hold anything, so the first place that fits as a whole counts; and ids with
     * a time after them count before ids alone. */
    for (int want_time = 1; want_time >= 0; want_time--)
        for (const char *p = s; p < end; p++) {
            bool token = (is_digit(*p) || *p == '-') && (p == s || is_blank(p[-1]));
            if (token && stamp_at(p, end, want_time, ev, rest)) {
                ev->comm = trimmed(s, p);
                return true;
            }
        }
    ev->pid = ev->tid = ev->cpu = -1;
    const char *p = perf_text_skip_blanks(s, end);
    if (!parse_time_token(&p, end, &ev->time_ns))
        return false;
    ev->has_time = true;
    ev->comm = (struct perf_text_str){s, 0};
    *rest = p;
    return true;
}

const char *perf_text_parse_event_name(const char *s, const char *end, struct perf_text_event *ev)
{
    const char *p = perf_text_skip_blanks(s, end), *digits = p;
    uint64_t period = 1;
    bool has_period = parse_decimal(&digits, end, &period) && (digits == end || is_blank(*digits));
    const char *name = has_period ? perf_text_skip_blanks(digits, end) : p;
    const char *e = token_end(name, end);
    ev->period = 1;
    ev->event = (struct perf_text_str){s, 0};
    if (e <= name + 1 || e[-1] != ':')
        return p;
    if (has_period)
        ev->period = period;
    ev->event = (struct perf_text_str){name, (size_t)(e - name) - 1};
    return e;
}

/* The "(" of the last balanced group of [s, end), if that group is a module: a blank before it, and
 * after it a blank or the end. */
static const char *find_module(const char *s, const char *end, const char **close)
{
    const char *p = end;
    while (p > s && p[-1] != ')')
        p--;
    if (p == s || (p < end && !is_blank(*p)))
        return NULL;
    *close = p - 1;
    int depth = 0;
    while (p > s) {
        p--;
        depth += (*p == ')') - (*p == '(');
        if (depth == 0)
            return p == s || is_blank(p[-1]) ? p : NULL;
    }
    /* Unbalanced parentheses in a path: the last "(" that follows a blank. */
    for (p = *close; p > s; p--)
        if (*p == '(' && is_blank(p[-1]))
            return p;
    return NULL;
}

/* Cuts "+0x1f" off the end of a name. */
static bool cut_offset(struct perf_text_str *name, uint64_t *offset)
{
    const char *end = name->s + name->len, *p = end;
    while (p > name->s && hex_value(p[-1]) >= 0)
        p--;
    if (p == end || end - p > 16 || p - name->s < 3 || memcmp(p - 3, "+0x", 3) != 0)
        return false;
    uint64_t v = 0;
    for (const char *c = p; c < end; c++)
        v = v << 4 | (uint64_t)hex_value(*c);
    name->len = (size_t)(p - 3 - name->s);
    *offset = v;
    return true;
}

bool perf_text_parse_place(const char *s, const char *end, struct perf_text_place *out)
{
    const char *p = perf_text_skip_blanks(s, end), *close = NULL;
    *out = (struct perf_text_place){0};
    if (!parse_hex_token(&p, end, &out->ip))
        return false;
    const char *open = find_module(p, end, &close);
    out->symbol = trimmed(p, open ? open : end);
    out->has_offset = cut_offset(&out->symbol, &out->offset);
    if (open) {
        uint64_t ignored = 0;
        out->module = (struct perf_text_str){open + 1, (size_t)(close - open) - 1};
        cut_offset(&out->module, &ignored); /* -F dsoff */
    }
    return true;
}

static const struct {
    const char *word;
    unsigned flag;
} flag_words[] = {
    {"call", PERF_TEXT_CALL},       {"return", PERF_TEXT_RETURN}, {"jcc", PERF_TEXT_CONDITIONAL},
    {"jmp", PERF_TEXT_JUMP},        {"tr strt", PERF_TEXT_BEGIN}, {"tr end", PERF_TEXT_END},
    {"syscall", PERF_TEXT_SYSCALL}, {"sysret", PERF_TEXT_SYSRET}, {"hw int", PERF_TEXT_HW_INT},
    {"int", PERF_TEXT_INT},         {"iret", PERF_TEXT_IRET},     {"async", PERF_TEXT_ASYNC},
    {"tx abrt", PERF_TEXT_ABORT},   {"(x)", PERF_TEXT_IN_TX},     {"vmentry", PERF_TEXT_VMENTRY},
    {"vmexit", PERF_TEXT_VMEXIT},
};

/* The flag of the word at *s, which is passed over; 0: no word that is known. Newer versions of perf put
 * what else is known of a branch behind a stroke: "jcc/miss/". */
static unsigned parse_flag_word(const char **s, const char *end)
{
    for (size_t i = 0; i < sizeof flag_words / sizeof *flag_words; i++) {
        const char *after = *s + strlen(flag_words[i].word);
        if (!starts_with(*s, end, flag_words[i].word) ||
            (after < end && !is_blank(*after) && *after != '/'))
            continue;
        *s = token_end(after, end);
        return flag_words[i].flag;
    }
    return 0;
}

static unsigned parse_flags(const char *s, const char *end, uint64_t *unknown_words)
{
    unsigned flags = 0;
    for (s = perf_text_skip_blanks(s, end); s < end; s = perf_text_skip_blanks(s, end)) {
        unsigned flag = parse_flag_word(&s, end);
        flags |= flag ? flag : PERF_TEXT_OTHER;
        if (flag)
            continue;
        *unknown_words += 1;
        s = token_end(s, end);
    }
    return flags;
}

bool perf_text_parse_half_branch(const char *s, const char *end)
{
    struct perf_text_place from;
    bool words = false;
    s = perf_text_skip_blanks(s, end);
    for (; parse_flag_word(&s, end); words = true)
        s = perf_text_skip_blanks(s, end);
    return words && perf_text_parse_place(s, end, &from);
}

/* The number behind a word of the rest of a line: "freq: 3200 MHz", "payload: 0x12". */
static bool number_behind(const char *s, const char *end, const char *word, bool hex, uint64_t *value)
{
    const char *p = memmem(s, (size_t)(end - s), word, strlen(word));
    if (!p)
        return false;
    p = perf_text_skip_blanks(p + strlen(word), end);
    if (!hex)
        return parse_decimal(&p, end, value);
    p += starts_with(p, end, "0x") ? 2 : 0;
    return parse_hex_token(&p, end, value);
}

bool perf_text_parse_packet(const char *s, const char *end, struct perf_text_event *ev)
{
    static const char *const others[] = {"psb", "mwait", "pwre", "pwrx", "exstop", "evt", "iflag"};
    struct perf_text_str name = ev->event;
    for (size_t i = 0; i < name.len; i++) /* modifiers */
        if (name.s[i] == ':')
            name.len = i;
#define IS(word) (name.len == strlen(word) && memcmp(name.s, word, name.len) == 0)
    ev->kind = PERF_TEXT_PACKET;
    ev->u.packet.kind = PERF_TEXT_NO_VALUE;
    if (IS("cbr") && number_behind(s, end, " freq:", false, &ev->u.packet.value))
        ev->u.packet.kind = PERF_TEXT_MHZ;
    else if (IS("ptwrite") && number_behind(s, end, " payload:", true, &ev->u.packet.value))
        ev->u.packet.kind = PERF_TEXT_PTWRITE;
    if (ev->u.packet.kind != PERF_TEXT_NO_VALUE)
        return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (IS(others[i]))
            return true;
#undef IS
    return false;
}

/* The next " => " that has an address behind it. */
static const char *find_arrow(const char *s, const char *end)
{
    while (end - s >= 4) {
        const char *p = memchr(s, '=', (size_t)(end - s) - 1);
        if (!p)
            return NULL;
        const char *to = perf_text_skip_blanks(p + 2 <= end ? p + 2 : end, end);
        uint64_t ip = 0;
        if (p > s && p[1] == '>' && is_blank(p[-1]) && to > p + 2 && parse_hex_token(&to, end, &ip))
            return p;
        s = p + 1;
    }
    return NULL;
}

/* The arrow between the two sides: outside of all parentheses, since names may hold arrows too. */
static const char *find_middle(const char *s, const char *end)
{
    int depth = 0;
    for (const char *at = s, *arrow; (arrow = find_arrow(at, end)) != NULL; at = arrow + 1) {
        for (; at < arrow; at++)
            depth += (*at == '(') - (*at == ')');
        if (depth <= 0)
            return arrow;
    }
    return NULL;
}

bool perf_text_parse_branch(const char *s, const char *end, struct perf_text_event *ev,
                            uint64_t *unknown_words)
{
    const char *words = perf_text_skip_blanks(s, end), *from = words;
    uint64_t ip = 0;
    for (;;) { /* flag words last until the first address */
        const char *p = from;
        if (p >= end)
            return false;
        if (parse_hex_token(&p, end, &ip))
            break;
        from = perf_text_skip_blanks(token_end(from, end), end);
    }
    const char *arrow = find_middle(from, end);
    if (!arrow)
        return false;
    struct perf_text_str left = trimmed(from, arrow);
    if (!perf_text_parse_place(left.s, left.s + left.len, &ev->u.branch.from) ||
        !perf_text_parse_place(arrow + 2, end, &ev->u.branch.to))
        return false;
    ev->u.branch.flags = parse_flags(words, from, unknown_words);
    ev->kind = PERF_TEXT_BRANCH;
    return true;
}

static bool parse_task(const char *s, const char *end, struct perf_text_event *ev)
{
    return s < end && *s++ == '(' && parse_pid(&s, end, &ev->pid) && s < end && *s++ == ':' &&
           parse_pid(&s, end, &ev->tid) && starts_with(s, end, "):(") && (s += 3) &&
           parse_pid(&s, end, &ev->u.task.ppid) && s < end && *s++ == ':' &&
           parse_pid(&s, end, &ev->u.task.ptid);
}

/* " exec: name:pid/tid", from the end inwards since the name may hold anything. */
static bool parse_comm(const char *s, const char *end, struct perf_text_event *ev)
{
    struct perf_text_str all = trimmed(s, end);
    s = all.s;
    end = all.s + all.len;
    ev->u.comm.exec = starts_with(s, end, "exec: ");
    s += ev->u.comm.exec ? 6 : 0;
    if (!ev->u.comm.exec && starts_with(s, end, ": "))
        s += 2;
    const char *colon = end;
    while (colon > s && *--colon != ':')
        ;
    const char *ids = colon + 1;
    if (colon <= s || !parse_pid(&ids, end, &ev->pid) || ids >= end || *ids++ != '/' ||
        !parse_pid(&ids, end, &ev->tid))
        return false;
    ev->u.comm.name = (struct perf_text_str){s, (size_t)(colon - s)};
    return true;
}

bool perf_text_parse_record(const char *s, const char *end, struct perf_text_event *ev)
{
    s = perf_text_skip_blanks(s, end) + strlen("PERF_RECORD_");
    const char *after = s;
    while (after < end && ((*after >= 'A' && *after <= 'Z') || *after == '_'))
        after++;
    struct perf_text_str name = {s, (size_t)(after - s)};
    const char *rest = perf_text_skip_blanks(after, end);
#define IS(word) (name.len == sizeof word - 1 && memcmp(name.s, word, name.len) == 0)
    if (IS("SWITCH") || IS("SWITCH_CPU_WIDE")) {
        ev->kind = PERF_TEXT_SWITCH;
        ev->u.sw.out = starts_with(rest, end, "OUT");
        ev->u.sw.preempted = starts_with(rest, end, "OUT preempt");
        return ev->u.sw.out || starts_with(rest, end, "IN");
    }
    if (IS("FORK") || IS("EXIT")) {
        ev->kind = IS("FORK") ? PERF_TEXT_FORK : PERF_TEXT_EXIT;
        return parse_task(rest, end, ev);
    }
    if (IS("COMM")) {
        ev->kind = PERF_TEXT_COMM;
        return parse_comm(after, end, ev);
    }
    if (IS("LOST") && starts_with(rest, end, "lost ")) {
        rest += 5;
        ev->kind = PERF_TEXT_LOST;
        return parse_decimal(&rest, end, &ev->u.lost);
    }
#undef IS
    return false;
}

bool perf_text_parse_error(const char *s, const char *end, struct perf_text_event *ev)
{
    struct perf_text_str line = trimmed(s, end);
    s = line.s;
    end = line.s + line.len;
    if (!starts_with(s, end, "instruction trace error"))
        return false;
    ev->kind = PERF_TEXT_ERROR;
    ev->pid = ev->tid = ev->cpu = -1;
    ev->has_time = false;
    ev->comm = ev->event = (struct perf_text_str){s, 0};
    ev->period = 1;
    ev->u.error.message = line;
    ev->u.error.ip = 0;
    for (const char *p = s; p < end; p = perf_text_skip_blanks(token_end(p, end), end)) {
        const char *value = perf_text_skip_blanks(token_end(p, end), end);
        pid_t n = -1;
        if (starts_with(p, end, "code "))
            break; /* the message follows */
        if (starts_with(p, end, "time "))
            ev->has_time = parse_time(&value, end, &ev->time_ns);
        else if (starts_with(p, end, "cpu ") && parse_pid(&value, end, &n))
            ev->cpu = n;
        else if (starts_with(p, end, "pid ") && parse_pid(&value, end, &n))
            ev->pid = n;
        else if (starts_with(p, end, "tid ") && parse_pid(&value, end, &n))
            ev->tid = n;
        else if (starts_with(p, end, "ip 0x")) {
            value += 2;
            if (!parse_hex_token(&value, end, &ev->u.error.ip))
                ev->u.error.ip = 0;
        }
    }
    return true;
}
