/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Whether anything was counted since somebody looked, so that nobody looks again at what is as it was. One word that all
 * CPUs read and hardly one writes: it is 1 already, wherever there is much to count.
 */
#pragma once
#include "kernel.h"

volatile u32 news;

/* To be called when all is counted. Who looks sets it to 0 first, and then reads the counts. */
INLINE void note(void)
{
	if (!news)
		news = 1;
}
