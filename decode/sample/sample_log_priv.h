/* Between sample_log.c and sample_log_build.c. */
#ifndef MTUI_DECODE_SAMPLE_LOG_PRIV_H
#define MTUI_DECODE_SAMPLE_LOG_PRIV_H

#include "decode/sample/sample_log.h"

/* By time between borders, those without a time last; equal times keep their order. */
int sample_log_sort(struct sample_log *l);

#endif
