/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Number of events dropped because a map was full, one counter per object.
 */
#pragma once
#include "kernel.h"

struct {
	MAP_UINT(type, MAP_PERCPU_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} drops SEC(".maps");

INLINE void count_drop(void)
{
	u32 zero = 0;
	u64 *n = map_lookup(&drops, &zero);

	if (n)
		(*n)++;
}
