/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Histograms of times: 2^SUB_BITS buckets per power of two from 2^MIN_EXP ns, SLOTS in total. The including file
 * defines these numbers; src/model has the same.
 */
#pragma once
#include "kernel.h"

/* Returns the bucket of a time. Shorter times go into the first bucket, longer ones into the last. */
INLINE u32 bucket(u64 ns)
{
	u32 exp = 0, slot;
	u64 v = ns;

	if (ns < (1ULL << MIN_EXP))
		return 0;
	if (v >> 32) { v >>= 32; exp += 32; }
	if (v >> 16) { v >>= 16; exp += 16; }
	if (v >> 8)  { v >>= 8;  exp += 8; }
	if (v >> 4)  { v >>= 4;  exp += 4; }
	if (v >> 2)  { v >>= 2;  exp += 2; }
	if (v >> 1)  { exp += 1; }
	slot = ((exp - MIN_EXP) << SUB_BITS) | ((ns >> (exp - SUB_BITS)) & ((1 << SUB_BITS) - 1));
	return slot < SLOTS ? slot : SLOTS - 1;
}
