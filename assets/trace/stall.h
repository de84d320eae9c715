/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Counts stalls: their number, time, and the longest one of each period.
 */
#pragma once
#include "kernel.h"

/* The longest stall is stored for each of the last two periods; user space starts a period. */
struct stall {
	u64 count;
	u64 time;
	u64 longest[2];
	u64 period[2];
};
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} period SEC(".maps");

/* Threads of a process share an entry: of two concurrent updates a longest time may be lost, a sum is not. */
INLINE void count(struct stall *s, u64 time)
{
	u32 zero = 0;
	u64 *now = map_lookup(&period, &zero), at;

	__sync_fetch_and_add(&s->count, 1);
	__sync_fetch_and_add(&s->time, time);
	if (!now)
		return;
	at = *now & 1;
	if (s->period[at] != *now) {
		s->period[at] = *now;
		s->longest[at] = time;
	} else if (s->longest[at] < time) {
		s->longest[at] = time;
	}
}
