/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Two counts of an object: what could not be followed for want of room, and how often it has counted something, so that
 * whoever looks need not look again at what is as it was.
 */
#pragma once
#include "kernel.h"

struct tally {
	u64 lost;
	u64 noted;
};
struct {
	MAP_UINT(type, MAP_PERCPU_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct tally);
} lost SEC(".maps");

INLINE void count_lost(void)
{
	u32 zero = 0;
	struct tally *n = map_lookup(&lost, &zero);

	if (n)
		n->lost++;
}

/* To be called when all is counted: who reads this first and the counts then misses nothing for good. */
INLINE void note(void)
{
	u32 zero = 0;
	struct tally *n = map_lookup(&lost, &zero);

	if (n)
		n->noted++;
}
