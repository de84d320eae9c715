/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Counters by key, with a histogram of times. The including file defines `struct key`, which has a `shard`, MAX_ACCOUNTS,
 * and ACCOUNT_DROPS, the counter of what found no account.
 */
#pragma once
#include "drops.h"

/* Time buckets: two per power of two from 2^11 ns to 2^33 ns (8.6 s), as in src/model. */
#define TIME_MIN_EXP 11
#define TIME_SUB_BITS 1
#define TIMES 44
#include "buckets.h"

/* 1 if there are more CPUs than shards, so that two CPUs may update one account at once. */
const volatile u8 SHARED = 1;

static u32 (*const this_cpu)(void) = (void *)8;

/* CPUs that do not fight for a cache line: `shard` is the CPU's number modulo this. */
#define SHARDS 8
struct account {
	u64 requests;
	u64 bytes;
	u64 ns;
	u32 times[TIMES];
};
struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, MAX_ACCOUNTS);
	MAP_TYPE(key, struct key);
	MAP_TYPE(value, struct account);
} accounts SEC(".maps");

/* A zeroed account: too large for the stack. */
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct account);
} empty SEC(".maps");

#define ADD(to, n) do { if (SHARED) __sync_fetch_and_add(&(to), n); else (to) += (n); } while (0)

INLINE u32 this_shard(void)
{
	return this_cpu() & (SHARDS - 1);
}

INLINE struct account *account(struct key *key)
{
	struct account *a = map_lookup(&accounts, key), *zero;
	u32 first = 0;

	if (a)
		return a;
	zero = map_lookup(&empty, &first);
	if (!zero)
		return 0;
	map_update(&accounts, key, zero, 1 /* unless another CPU was first */);
	a = map_lookup(&accounts, key);
	if (!a)
		count_drop_of(ACCOUNT_DROPS);
	return a;
}

/* Counts a completed request and the time that it took; 0 if that is unknown. */
INLINE void count_request(struct account *a, u64 took)
{
	u64 at;

	ADD(a->requests, 1);
	if (!took)
		return;
	ADD(a->ns, took);
	at = bucket(took, exponent(took), TIME_MIN_EXP, TIME_SUB_BITS, TIMES);
	OPAQUE(at);
	if (at < TIMES)
		ADD(a->times[at], 1);
}
