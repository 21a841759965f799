#include "tui/screens.h"

#include "tui/v_calls.h"
#include "tui/v_compare.h"
#include "tui/v_event.h"
#include "tui/v_function.h"
#include "tui/v_process.h"
#include "tui/v_record.h"
#include "tui/v_symbol.h"
#include "tui/v_timeline.h"

const struct view_ops *const screens[] = {
    &view_process,
    &view_symbol,
    &view_record,
    &view_timeline,
    &view_function,
    &view_event,
    &view_calls,
    &view_compare,
};

const size_t screens_count = sizeof screens / sizeof *screens;
