#include "tui/screens.h"

const struct view_ops *const screens[] = {
    NULL,
};

const size_t screens_count = sizeof screens / sizeof *screens - 1;
