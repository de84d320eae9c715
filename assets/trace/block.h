/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Packs device numbers and identifies requests.
 */
#pragma once
#include "kernel.h"

INLINE u32 number(struct gendisk *disk)
{
	return (u32)disk->major << 20 | ((u32)disk->first_minor & 0xfffff);
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
