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

enum rqf_flags { __RQF_FLUSH_SEQ = 1 };
#define RQF(name, what) __builtin_preserve_enum_value(*(typeof(enum rqf_flags) *)name, what)

/* Whether the data of a request completes, but not yet the request: the kernel replaces FUA and preflush by a sequence
 * of flush, data and flush where the device lacks them, and `block_rq_complete` fires again at the end, with 0 bytes.
 * `unnamed`: the flags are in an enumeration, which may have no name. */
INLINE bool in_flush_sequence(struct request *rq, bool unnamed)
{
	u32 flags = rq->rq_flags;

	if ((rq->cmd_flags & 0xff) == 2 /* the flush of the sequence itself */)
		return 0;
	/* An enumerator since 6.11, of an enumeration without a name in 6.12, where types do not lead to it: the second one there.
	 * No shift may move out of its branch: the other kernels have no such value. */
	if (RQF(__RQF_FLUSH_SEQ, 0))
		flags >>= RQF(__RQF_FLUSH_SEQ, 1);
	else if (unnamed)
		flags >>= 1;
	else
		flags >>= 4;
	OPAQUE(flags);
	return flags & 1;
}
