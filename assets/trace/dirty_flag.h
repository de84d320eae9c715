/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * A flag that is set when anything was counted since the last reading, so that idle maps are not read again. All
 * CPUs read this word but rarely write it: under load it is already 1.
 */
#pragma once
#include "kernel.h"

volatile u32 dirty;

/* Call this after counting. The reader clears the flag first and then reads the counters. */
INLINE void mark_dirty(void)
{
	if (!dirty)
		dirty = 1;
}
