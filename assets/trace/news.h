/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Whether anything was counted since somebody looked, so that nobody looks again at what is as it was. One word that all
 * CPUs read and hardly one writes: it is 1 already, wherever there is much to count. User space has it in its own
 * memory, so that to look takes no system call.
 */
#pragma once
#include "kernel.h"

struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_UINT(map_flags, MAP_MMAPABLE);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} news SEC(".maps");

/* To be called when all is counted. Who looks sets it to 0 first, and then reads the counts. */
INLINE void note(void)
{
	u32 only = 0;
	volatile u32 *any = map_lookup(&news, &only);

	if (any && !*any)
		*any = 1;
}
