/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Histograms of times: 2^sub_bits buckets per power of two from 2^min_exp ns, `slots` in total. src/model has the same
 * numbers.
 */
#pragma once
#include "kernel.h"

/* The exponent of the power of two below a time. */
INLINE u32 exponent(u64 ns)
{
	u32 exp = 0;

	if (ns >> 32) { ns >>= 32; exp += 32; }
	if (ns >> 16) { ns >>= 16; exp += 16; }
	if (ns >> 8)  { ns >>= 8;  exp += 8; }
	if (ns >> 4)  { ns >>= 4;  exp += 4; }
	if (ns >> 2)  { ns >>= 2;  exp += 2; }
	if (ns >> 1)  { exp += 1; }
	return exp;
}

/* Returns the bucket of a time with this exponent. Shorter times go into the first bucket, longer ones into the last. */
INLINE u32 bucket(u64 ns, u32 exp, u32 min_exp, u32 sub_bits, u32 slots)
{
	u32 slot;

	if (exp < min_exp)
		return 0;
	slot = ((exp - min_exp) << sub_bits) | ((ns >> (exp - sub_bits)) & ((1 << sub_bits) - 1));
	return slot < slots ? slot : slots - 1;
}
