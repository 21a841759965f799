/* How far apart the samples of a running thread lie: the median distance of two samples of one thread,
 * in CPU time where switches are known. Exact up to 2^16 distances, over an even selection of them
 * beyond that. Fed with events in the order of time; threads are
 * small numbers. */
#ifndef MTUI_DECODE_PERIOD_H
#define MTUI_DECODE_PERIOD_H

#include <stdbool.h>
#include <stdint.h>

struct period_meter;

struct period_meter *period_meter_new(void);
void period_meter_free(struct period_meter *m);
void period_meter_sample(struct period_meter *m, uint32_t thread, uint64_t time_ns);
void period_meter_switch(struct period_meter *m, uint32_t thread, uint64_t time_ns, bool out);

/* 0: no two samples of one thread. Reorders what was gathered; more may be fed after it. */
uint64_t period_meter_median(struct period_meter *m);

#endif
