/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * What the program at the completion of a request tells the one that runs after it. Both objects have this map, of which
 * user space keeps one.
 *
 * The kernel runs no program within itself on one CPU where the second one is called (since 6.1), so what the first one stores
 * is there for the second one.
 */
#pragma once
#include "kernel.h"

/* Bits of a stored process: it is known; and the data of the request has completed, and a flush follows. */
#define KNOWN (1u << 30)
#define DATA_DONE (1u << 31)

struct completed {
	u64 took; /* since the request was allocated, ns; 0 if unknown */
	u32 tgid; /* the submitter, with the bits above */
	u32 dev; /* major << 20 | minor; 0 without a disk */
};
struct {
	MAP_UINT(type, MAP_PERCPU_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct completed);
} completed SEC(".maps");
