/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Packs device numbers and identifies requests.
 */
#pragma once
#include "kernel.h"

INLINE u32 number(struct gendisk *disk)
{
	return (u32)disk->major << 20 | ((u32)disk->first_minor & 0xfffff);
}

INLINE struct gendisk *disk_of(struct request *rq)
{
	if (HAS(struct request___old, rq_disk))
		return ((struct request___old *)rq)->rq_disk;
	return rq->q->disk;
}

/* Two loads, because the verifier does not follow a choice between two pointers. */
INLINE u64 subject(u64 *ctx, bool queue_first)
{
	u64 arg;

	if (queue_first) { arg = ctx[1]; OPAQUE(arg); } else { arg = ctx[0]; OPAQUE(arg); }
	return arg;
}

/* A number for a request. The verifier forbids arithmetic on pointers, but allows the difference of two. */
INLINE u64 id_of(struct request *rq)
{
	u64 id = (u64)rq, queue = (u64)rq->q;

	OPAQUE(queue);
	return id - queue;
}

enum rqf_flags { __RQF_FLUSH_SEQ = 1, __RQF_IO_STAT = 8 };
#define RQF(name, what) __builtin_preserve_enum_value(*(typeof(enum rqf_flags) *)name, what)

/* Defines whether a request has a flag. Flags are enumerators since 6.11, of an enumeration without a name in 6.12, where types do
 * not lead to it: `unnamed` is true there, and the flag the one numbered so. Before that it was another bit. No shift may move out
 * of its branch: the other kernels have no such value. */
#define REQUEST_FLAG(function, name, number, bit_before)                                                                         \
	INLINE bool function(struct request *rq, bool unnamed)                                                                   \
	{                                                                                                                        \
		u32 flags = rq->rq_flags;                                                                                        \
                                                                                                                                 \
		if (RQF(name, 0))                                                                                                \
			flags >>= RQF(name, 1);                                                                                  \
		else if (unnamed)                                                                                                \
			flags >>= number;                                                                                        \
		else                                                                                                             \
			flags >>= bit_before;                                                                                    \
		OPAQUE(flags);                                                                                                   \
		return flags & 1;                                                                                                \
	}

REQUEST_FLAG(has_flush_sequence, __RQF_FLUSH_SEQ, 1, 4)
/* Whether the kernel counts it, which it does not with `queue/iostats` 0. */
REQUEST_FLAG(is_counted, __RQF_IO_STAT, 8, 13)

INLINE bool is_flush(struct request *rq)
{
	return (rq->cmd_flags & 0xff) == 2;
}

/* Whether the data of a request completes, but not yet the request: the kernel replaces FUA and preflush by a sequence
 * of flush, data and flush where the device lacks them, and `block_rq_complete` fires again at the end, with 0 bytes.
 * `unnamed`: as above. */
INLINE bool in_flush_sequence(struct request *rq, bool unnamed)
{
	return !is_flush(rq) /* that of the sequence itself */ && has_flush_sequence(rq, unnamed);
}

/* When a request was allocated, 0 if that is unknown: the kernel notes it in those that it counts and in flushes; in others
 * it is that of an earlier request. */
INLINE u64 start_of(struct request *rq, bool unnamed)
{
	return is_flush(rq) || is_counted(rq, unnamed) ? rq->start_time_ns : 0;
}
