/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * A flag that tells whether anything was counted since the last reading, so that idle maps are not read again. All
 * CPUs read this word but rarely write it: under load it is already 1.
 */
#pragma once
#include "kernel.h"

volatile u32 news;

/* Call this after counting. The reader clears the flag first and then reads the counters. */
INLINE void note(void)
{
	if (!news)
		news = 1;
}
