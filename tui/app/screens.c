#include "tui/app/screens.h"

#include "tui/analysis/v_calls.h"
#include "tui/analysis/v_compare.h"
#include "tui/analysis/v_event.h"
#include "tui/analysis/v_function.h"
#include "tui/choose/v_process.h"
#include "tui/record/v_record.h"
#include "tui/choose/v_symbol.h"
#include "tui/timeline/v_timeline.h"

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
