#include "tui/ui/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/base/utf8.h"
#include "decode/trace/trace.h"
#include "tui/ui/function_names.h"
#include "tui/ui/settings.h"

struct model *model_new(struct loop *loop, struct settings *settings)
{
    struct model *m = xcalloc(1, sizeof *m);
    m->loop = loop;
    m->settings = settings;
    m->names = function_names_new();
    m->dirty = true;
    return m;
}

static struct model *outermost(struct model *m)
{
    while (m->outer)
        m = m->outer;
    return m;
}

/* Puts a copy of text (or NULL) into a string field. */
static void set_string(char **field, const char *text)
{
    char *copy = text ? xstrdup(text) : NULL;
    free(*field);
    *field = copy;
}

void model_free(struct model *m)
{
    if (!m)
        return;
    if (m->trace_release)
        m->trace_release(m->trace_release_arg);
    for (size_t i = 0; i < m->triggers.len; i++)
        free(m->triggers.data[i]);
    vec_free(&m->triggers);
    vec_free(&m->more_targets);
    free(m->want.screen);
    free(m->want.question);
    free(m->want.prompt);
    free(m->want.prompt_initial);
    free(m->want.edit_path);
    free(m->want.copy);
    free(m->say_first);
    function_names_free(m->names);
    free(m);
}

static enum name_style style_of(const struct settings *s)
{
    const char *how = s ? settings_text(s, SET_DEMANGLE) : "short";
    return strcmp(how, "full") == 0 ? NAMES_FULL : strcmp(how, "raw") == 0 ? NAMES_RAW : NAMES_SHORT;
}

void model_changed(struct model *m, enum model_change what)
{
    m->dirty = true;
    const struct functions *functions = m->trace ? trace_functions(m->trace) : NULL;
    if (what == MODEL_TRACE || what == MODEL_SETTINGS)
        function_names_set(m->names, functions, style_of(m->settings));
    else if (what == MODEL_TRACE_GREW)
        function_names_grow(m->names, functions);
    if (m->on_change)
        m->on_change(m->on_change_arg, what);
}

void model_redraw(struct model *m)
{
    outermost(m)->dirty = true;
}

static struct model_target target_of(pid_t pid, uint64_t start_time, const char *comm)
{
    struct model_target t = {.pid = pid, .start_time = pid ? start_time : 0};
    snprintf(t.comm, sizeof t.comm, "%s", pid && comm ? comm : "");
    return t;
}

void model_set_target(struct model *m, pid_t pid, uint64_t start_time, const char *comm)
{
    m->target = target_of(pid, start_time, comm);
    m->more_targets.len = 0;
    model_changed(m, MODEL_TARGET);
}

void model_add_target(struct model *m, pid_t pid, uint64_t start_time, const char *comm)
{
    vec_push(&m->more_targets, target_of(pid, start_time, comm));
    model_changed(m, MODEL_TARGET);
}

static size_t find_trigger(const struct model *m, const char *spec)
{
    size_t i = 0;
    while (i < m->triggers.len && strcmp(m->triggers.data[i], spec) != 0)
        i++;
    return i;
}

size_t model_add_trigger(struct model *m, const char *spec)
{
    size_t i = find_trigger(m, spec);
    if (i == m->triggers.len) {
        vec_push(&m->triggers, xstrdup(spec));
        model_changed(m, MODEL_TRIGGERS);
    }
    return i;
}

bool model_remove_trigger(struct model *m, const char *spec)
{
    size_t i = find_trigger(m, spec);
    if (i == m->triggers.len)
        return false;
    free(m->triggers.data[i]);
    vec_remove(&m->triggers, i);
    model_changed(m, MODEL_TRIGGERS);
    return true;
}

bool model_has_trigger(const struct model *m, const char *spec)
{
    return find_trigger(m, spec) < m->triggers.len;
}

void model_clear_triggers(struct model *m)
{
    for (size_t i = 0; i < m->triggers.len; i++)
        free(m->triggers.data[i]);
    m->triggers.len = 0;
    model_changed(m, MODEL_TRIGGERS);
}

void model_set_session(struct model *m, struct session *session, bool recording)
{
    m->session = session;
    m->recording = recording;
    model_changed(m, MODEL_SESSION);
}

void model_set_trace(struct model *m, const struct trace *trace, const char *label,
                     void (*release)(void *arg), void *release_arg)
{
    model_set_indexed_trace(m, trace, NULL, label, release, release_arg);
}

/* Another trace object; the old one lives until every view has been told. */
static void replace_trace(struct model *m, const struct trace *trace, const struct pyramid *pyramid,
                          void (*release)(void *arg), void *release_arg, enum model_change what)
{
    void (*old_release)(void *arg) = m->trace_release;
    void *old_arg = m->trace_release_arg;
    m->trace = trace;
    m->pyramid = pyramid;
    m->trace_release = release;
    m->trace_release_arg = release_arg;
    model_changed(m, what);
    if (old_release)
        old_release(old_arg);
}

void model_set_indexed_trace(struct model *m, const struct trace *trace,
                             const struct pyramid *pyramid, const char *label,
                             void (*release)(void *arg), void *release_arg)
{
    snprintf(m->trace_label, sizeof m->trace_label, "%s", label ? label : "");
    m->cursor_ns = m->range_start_ns = m->range_end_ns = 0;
    m->cursor_tid = 0;
    m->subject.valid = false;
    replace_trace(m, trace, pyramid, release, release_arg, MODEL_TRACE);
}

void model_grow_trace(struct model *m, const struct trace *trace, const struct pyramid *pyramid,
                      void (*release)(void *arg), void *release_arg)
{
    replace_trace(m, trace, pyramid, release, release_arg, MODEL_TRACE_GREW);
}

void model_set_loading(struct model *m, const struct model_loading *loading)
{
    m->loading = *loading;
    m->dirty = true;
}

bool model_is_growing(const struct model *m)
{
    return m->trace && m->loading.active && m->loading.part;
}

static const char *loading_verb(const struct model_loading *l)
{
    return l->finishing ? "finishing" : "decoding";
}

const char *model_loading_far(const struct model_loading *l, char *out)
{
    out[0] = '\0';
    if (l->finishing)
        return out;
    if (!l->endless)
        snprintf(out, FMT_MAX, "%u %%", l->percent);
    else if (l->read_bytes)
        fmt_size(out, l->read_bytes);
    return out;
}

void model_loading_short(const struct model *m, char *out, size_t size)
{
    char far[FMT_MAX];
    model_loading_far(&m->loading, far);
    snprintf(out, size, "%s%s%s", loading_verb(&m->loading), far[0] ? " " : "", far);
}

void model_loading_text(const struct model *m, char *out, size_t size)
{
    const struct model_loading *l = &m->loading;
    char n[FMT_MAX], spans[FMT_MAX + 16] = "", far[FMT_MAX + 16] = "";
    if (size)
        out[0] = '\0';
    if (!l->active)
        return;
    if (l->spans)
        snprintf(spans, sizeof spans, ", %s span%s", fmt_count(n, l->spans), l->spans == 1 ? "" : "s");
    if (model_loading_far(l, n)[0] && (l->endless || l->percent || l->spans))
        snprintf(far, sizeof far, ": %s%s", n, l->endless ? " read" : "");
    snprintf(out, size, "%s %s%s%s%s", l->stopping ? "stopping" : loading_verb(l), l->what, far, spans,
             l->stopping || !l->cancel ? ""
             : !model_is_growing(m)    ? ", ^C stops"
             : l->spans                ? ", ^C keeps them"
                                       : ", ^C keeps what is there");
}

bool model_stop_loading(struct model *m)
{
    struct model_loading *l = &m->loading;
    if (!l->active || !l->cancel)
        return false;
    l->stopping = true;
    m->dirty = true;
    l->cancel(l->cancel_arg);
    return true;
}

void model_set_cursor_call(struct model *m, pid_t tid, uint64_t time_ns, size_t depth)
{
    if (m->cursor_tid == tid && m->cursor_ns == time_ns && m->cursor_depth == depth)
        return;
    m->cursor_tid = tid;
    m->cursor_ns = time_ns;
    m->cursor_depth = depth;
    model_changed(m, MODEL_CURSOR);
}

void model_set_cursor(struct model *m, pid_t tid, uint64_t time_ns)
{
    model_set_cursor_call(m, tid, time_ns, SIZE_MAX);
}

void model_set_range(struct model *m, uint64_t start_ns, uint64_t end_ns)
{
    if (m->range_start_ns == start_ns && m->range_end_ns == end_ns)
        return;
    m->range_start_ns = start_ns;
    m->range_end_ns = end_ns;
    model_changed(m, MODEL_CURSOR);
}

void model_name_subject(struct model *m, struct model_subject subject)
{
    if (!m->subject.valid)
        m->subject = subject;
}

bool model_take_subject(struct model *m, struct model_subject *subject)
{
    *subject = m->subject;
    m->subject.valid = false;
    return subject->valid;
}

__attribute__((format(printf, 3, 0))) static void say(struct model *m, enum model_severity severity,
                                                      const char *fmt, va_list ap)
{
    char raw[sizeof m->say];
    m = outermost(m);
    vsnprintf(raw, sizeof raw, fmt, ap);
    utf8_readable(m->say, sizeof m->say, raw, strlen(raw));
    m->say_severity = severity;
    m->dirty = true;
}

void model_say(struct model *m, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(m, SAY_INFO, fmt, ap);
    va_end(ap);
}

void model_warn(struct model *m, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(m, SAY_WARN, fmt, ap);
    va_end(ap);
}

void model_error(struct model *m, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(m, SAY_ERROR, fmt, ap);
    va_end(ap);
}

void model_error_first(struct model *m, const char *fmt, ...)
{
    char raw[sizeof m->say], clean[sizeof m->say];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    utf8_readable(clean, sizeof clean, raw, strlen(raw));
    m = outermost(m);
    set_string(&m->say_first, clean);
    m->dirty = true;
}

void model_hush(struct model *m)
{
    m = outermost(m);
    if (m->say_first)
        set_string(&m->say_first, NULL);
    else
        m->say[0] = '\0';
}

void model_go(struct model *m, const char *screen)
{
    m = outermost(m);
    set_string(&m->want.screen, screen);
    m->dirty = true;
}

void model_ask(struct model *m, const char *question, model_answer_fn *answer, void *arg)
{
    m = outermost(m);
    struct model_requests *w = &m->want;
    if (w->question && w->answer)
        w->answer(w->answer_arg, false);
    set_string(&w->question, question);
    w->answer = answer;
    w->answer_arg = arg;
    m->dirty = true;
}

bool model_withdraw(struct model *m, model_answer_fn *answer, const void *arg)
{
    struct model_requests *w = &outermost(m)->want;
    if (!w->question || w->answer != answer || w->answer_arg != arg)
        return false;
    set_string(&w->question, NULL);
    w->answer(w->answer_arg, false);
    w->answer = NULL;
    return outermost(m)->dirty = true;
}

void model_prompt(struct model *m, const char *label, const char *initial, model_line_fn *line,
                  void *arg)
{
    m = outermost(m);
    struct model_requests *w = &m->want;
    if (w->prompt && w->line)
        w->line(w->line_arg, NULL);
    set_string(&w->prompt, label);
    set_string(&w->prompt_initial, initial ? initial : "");
    w->line = line;
    w->line_arg = arg;
    m->dirty = true;
}

void model_edit_source(struct model *m, const char *path, int line)
{
    m = outermost(m);
    set_string(&m->want.edit_path, path);
    m->want.edit_line = line;
}

void model_copy(struct model *m, const char *text)
{
    m = outermost(m);
    set_string(&m->want.copy, text);
}

void model_quit(struct model *m)
{
    m->want.quit = true;
}
