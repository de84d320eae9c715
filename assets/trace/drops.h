/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Number of events dropped because a map was full: a counter per object, or DROPS of them.
 */
#pragma once
#include "kernel.h"

#ifndef DROPS
#define DROPS 1
#endif
struct {
	MAP_UINT(type, MAP_PERCPU_ARRAY);
	MAP_UINT(max_entries, DROPS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} drops SEC(".maps");

INLINE void count_drop_of(u32 which)
{
	u64 *n = map_lookup(&drops, &which);

	if (n)
		(*n)++;
}

INLINE void count_drop(void)
{
	count_drop_of(0);
}
