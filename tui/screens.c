#include "tui/screens.h"

#include "tui/v_process.h"

const struct view_ops *const screens[] = {
    &view_process,
};

const size_t screens_count = sizeof screens / sizeof *screens;
