/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Who submits each request: the programs that store it, and a function that looks it up.
 */
#pragma once
#include "owner.h"

/* Submitters of requests in flight: a slot for two by hash of the request. */
#define PLACE_BITS 14
struct place {
	u64 rq[2];
	u32 tgid[2];
};
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1 << PLACE_BITS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct place);
} submitted SEC(".maps");

INLINE struct place *place_of(u64 rq)
{
	u32 at = ((rq >> 6) * 0x9e3779b97f4a7c15ULL) >> (64 - PLACE_BITS);

	return map_lookup(&submitted, &at);
}

/* Stores who submits a request. `anew`: it was just created; otherwise the first submitter is kept. */
INLINE void submit(struct request *rq, bool anew)
{
	u64 id = id_of(rq), ids = current_ids();
	struct place *p = place_of(id);
	u32 tgid = ids >> 32;

	if (!p)
		return;
	if (!anew && (p->rq[0] == id || p->rq[1] == id))
		return;
	keep_name(ids);
	if (p->rq[0] && p->rq[0] != id) {
		if (!p->rq[1] || p->rq[1] == id) {
			p->rq[1] = id;
			p->tgid[1] = tgid;
			return;
		}
		count_drop();
	}
	p->rq[0] = id;
	p->tgid[0] = tgid;
}

SEC("tp_btf/block_io_start")
int io_start(u64 *ctx)
{
	submit((void *)ctx[0], 1);
	return 0;
}

SEC("tp_btf/block_rq_insert")
int rq_insert(u64 *ctx)
{
	submit((void *)subject(ctx, RQ_INSERT_QUEUE), 0);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int rq_issue(u64 *ctx)
{
	submit((void *)subject(ctx, RQ_ISSUE_QUEUE), 0);
	return 0;
}

/* Looks up who submitted a request; `last` removes the entry. Returns false if unknown. */
INLINE bool submitter(u64 rq, u32 *tgid, bool last)
{
	struct place *p = place_of(rq);

	if (!p)
		return 0;
	if (p->rq[0] == rq) {
		*tgid = p->tgid[0];
		if (last)
			p->rq[0] = 0;
		return 1;
	}
	if (p->rq[1] == rq) {
		*tgid = p->tgid[1];
		if (last)
			p->rq[1] = 0;
		return 1;
	}
	return 0;
}
