/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Request latency: a histogram for each device and kind of request.
 *
 * Request-based devices (most): `total` is the time from allocation of the request (including queueing and merging,
 * like await) to its completion, `service` the time from issue to the driver to completion. Bio-based devices (zram,
 * md, dm, brd) have only `total`, from submission of the bio to its end.
 *
 * Also counted: request sizes, and how many requests continue where a recent one of the same kind ended. That is
 * decided at issue, in the order the device receives them, and stored with the issue time.
 *
 * User space creates the entries of `histograms`, so nothing is allocated here and memory depends on the devices
 * present. A missing entry is requested in `unknown` and created at the next reading.
 */
#include "block.h"
#include "drops.h"
#include "dirty_flag.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* 1 if the tracepoint has the queue as its first argument (before 5.11); the loader sets it from the kernel's
 * BTF. */
const volatile u8 RQ_ISSUE_QUEUE = 0;
const volatile u8 BIO_QUEUE_QUEUE = 0;

/* Buckets: 16 per power of two from 2^8 ns to 2^36 ns (68 s). src/model/latency.rs has the same. */
#define SUB_BITS 4
#define MIN_EXP 8
#define SLOTS 448
#include "buckets.h"

/* Size buckets: one per power of two from 512 bytes; all sizes from 1 MiB share one. */
#define SIZES 12

enum { READ, WRITE, FLUSH, OTHER };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct request___data {
	void *bio;
};
#pragma clang attribute pop

struct key {
	u32 dev; /* major << 20 | minor, of the whole device */
	u32 op;
};
/* Counters wrap at 32 bits; differences of their sums stay right. */
struct histogram {
	u32 total[SLOTS];
	u32 service[SLOTS];
	u32 sizes[SIZES];
	u32 order[2]; /* elsewhere, and where a recent one ended */
};
struct started {
	u64 ns;
	struct key key;
	u32 bytes;
	u32 follows;
};

struct {
	MAP_UINT(type, MAP_PERCPU_HASH);
	MAP_UINT(map_flags, MAP_NO_PREALLOC);
	MAP_UINT(max_entries, 4096);
	MAP_TYPE(key, struct key);
	MAP_TYPE(value, struct histogram);
} histograms SEC(".maps");

struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, 64);
	MAP_TYPE(key, struct key);
	MAP_TYPE(value, u32);
} unknown SEC(".maps");

/* Issue times: a slot for two by hash of the request. An array needs no helper call, takes no lock and is never
 * full; a third request in a slot evicts the first, which is counted. */
#define PLACE_BITS 15
struct place {
	u64 rq[2];
	u64 ns[2];
};
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1 << PLACE_BITS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct place);
} issued SEC(".maps");

/* Ends of the last streams of reads and of writes, for each hardware queue. A device with one queue takes a lock
 * for it anyway, others have a queue per CPU, so this adds no contention. A request that continues none of them
 * starts a stream in place of the oldest. The array needs no helper call; two queues that share a slot only track
 * fewer streams. */
#define STREAMS 7
#define QUEUE_BITS 10
struct streams {
	u64 ends[STREAMS];
	u64 next;
};
struct queue {
	struct streams kinds[2];
};
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1 << QUEUE_BITS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct queue);
} queues SEC(".maps");

/* Submission times of bios, by address. */
struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(map_flags, MAP_NO_PREALLOC);
	MAP_UINT(max_entries, 65536);
	MAP_TYPE(key, u64);
	MAP_TYPE(value, struct started);
} submitted SEC(".maps");

INLINE void count(u32 *slots, u64 ns)
{
	u64 at = bucket(ns);

	OPAQUE(at);
	if (at < SLOTS)
		slots[at]++;
}

INLINE struct histogram *find(struct key *key)
{
	struct histogram *h = map_lookup(&histograms, key);
	u32 one = 1;

	if (!h) {
		map_update(&unknown, key, &one, 0);
		mark_dirty();
	}
	return h;
}

/* Kinds as in /proc/diskstats; discards, zone commands and passthrough are none of them. */
INLINE u32 kind(u32 flags)
{
	switch (flags & 0xff) {
	case 0: return READ;
	case 1: /* write */
	case 7: /* zone append; write same in old kernels */
	case 9: /* write zeroes */
		return WRITE;
	case 2: return FLUSH;
	default: return OTHER;
	}
}

/* A number for the hardware queue of a request. */
INLINE u64 hardware_queue(struct request *rq)
{
	u64 hctx = (u64)rq->mq_hctx, queue = (u64)rq->q;

	OPAQUE(queue);
	return hctx - queue;
}

/* Whether a request continues a recent stream, whose end it becomes. */
INLINE u64 follows(u64 queue, u32 kind, u64 sector, u32 bytes)
{
	/* The queue is mixed in, in case two queues share a slot. */
	u64 mixed = (queue >> 6) * 0x9e3779b97f4a7c15ULL;
	u64 start = sector ^ mixed, end = (sector + (bytes >> 9)) ^ mixed, next;
	u32 at = mixed >> (64 - QUEUE_BITS);
	struct queue *q;
	struct streams *s;

	if (kind > WRITE || !bytes)
		return 0;
	q = map_lookup(&queues, &at);
	if (!q)
		return 0;
	s = kind == READ ? &q->kinds[READ] : &q->kinds[WRITE];
#pragma unroll
	for (u32 i = 0; i < STREAMS; i++) {
		if (s->ends[i] == start) {
			s->ends[i] = end;
			return 1;
		}
	}
	next = s->next;
	if (next >= STREAMS)
		next = 0;
	OPAQUE(next);
	if (next < STREAMS)
		s->ends[next] = end;
	s->next = next + 1;
	return 0;
}

INLINE void count_size(struct histogram *h, u32 bytes)
{
	u32 sectors = bytes >> 9;
	u64 at = 0;

	if (sectors >> 8) { sectors >>= 8; at += 8; }
	if (sectors >> 4) { sectors >>= 4; at += 4; }
	if (sectors >> 2) { sectors >>= 2; at += 2; }
	if (sectors >> 1) { at += 1; }
	OPAQUE(at);
	h->sizes[at < SIZES ? at : SIZES - 1]++;
}

INLINE void count_order(struct histogram *h, u64 follows)
{
	if (follows)
		h->order[1]++;
	else
		h->order[0]++;
}

INLINE struct place *place_of(u64 rq)
{
	u32 at = ((rq >> 6) * 0x9e3779b97f4a7c15ULL) >> (64 - PLACE_BITS);

	return map_lookup(&issued, &at);
}

SEC("tp_btf/block_rq_issue")
int rq_issue(u64 *ctx)
{
	struct request *r = (void *)subject(ctx, RQ_ISSUE_QUEUE);
	u64 rq = id_of(r), now = ktime_ns() & ~1ULL;
	struct place *p = place_of(rq);

	if (!p)
		return 0;
	/* The last bit of the time stores whether the request is sequential. */
	now |= follows(hardware_queue(r), kind(r->cmd_flags), r->__sector, r->__data_len);
	if (p->rq[0] && p->rq[0] != rq) {
		if (!p->rq[1] || p->rq[1] == rq) {
			p->rq[1] = rq;
			p->ns[1] = now;
			return 0;
		}
		count_drop();
	}
	p->rq[0] = rq;
	p->ns[0] = now;
	return 0;
}

/* Returns the issue time of a request, 0 if unknown; `last` removes it. */
INLINE u64 issue_of(u64 rq, bool last)
{
	struct place *p = place_of(rq);

	if (!p)
		return 0;
	if (p->rq[0] == rq) {
		if (last)
			p->rq[0] = 0;
		return p->ns[0];
	}
	if (p->rq[1] == rq) {
		if (last)
			p->rq[1] = 0;
		return p->ns[1];
	}
	return 0;
}

SEC("tp_btf/block_rq_complete")
int rq_complete(u64 *ctx)
{
	struct request *rq = (void *)ctx[0];
	u64 now = ktime_ns(), began, issue;
	u32 done = ctx[2], left = rq->__data_len;
	bool last = !in_flush_sequence(rq);
	struct gendisk *disk;
	struct histogram *h;
	struct key of;

	/* Partial completion: the rest is still in flight. */
	if (done && done < left)
		return 0;
	issue = issue_of(id_of(rq), last);
	of.op = kind(rq->cmd_flags);
	if (of.op == OTHER)
		return 0;
	/* Request-based dm (multipath) completes a request whose data its clones have completed before. */
	if (!left && of.op != FLUSH && !((struct request___data *)rq)->bio)
		return 0;
	if (HAS(struct request___old, rq_disk))
		disk = ((struct request___old *)rq)->rq_disk;
	else
		disk = rq->q->disk;
	if (!disk)
		return 0;
	of.dev = number(disk);
	h = find(&of);
	if (!h)
		return 0;
	/* 0 for a flush without data, and at the end of a flush sequence, whose data was counted before. */
	if (left) {
		count_size(h, left);
		if (issue)
			count_order(h, issue & 1);
	}
	if (last) {
		began = rq->start_time_ns;
		if (began && began < now)
			count(h->total, now - began);
		/* Unknown for a request issued before loading, and for a flush without data, which is never issued. */
		if (issue && issue < now)
			count(h->service, now - issue);
	}
	mark_dirty();
	return 0;
}

SEC("tp_btf/block_bio_queue")
int bio_queue(u64 *ctx)
{
	u64 key = subject(ctx, BIO_QUEUE_QUEUE);
	struct bio *bio = (void *)key;
	struct started s = { .ns = ktime_ns() };
	struct gendisk *disk;

	if (HAS(struct bio___old, bi_disk))
		disk = ((struct bio___old *)bio)->bi_disk;
	else
		disk = bio->bi_bdev->bd_disk;
	/* Only bio-based devices. */
	if (!disk || !disk->fops->submit_bio)
		return 0;
	s.key.op = kind(bio->bi_opf);
	if (s.key.op == WRITE && !bio->bi_iter.bi_size)
		s.key.op = FLUSH;
	if (s.key.op == OTHER)
		return 0;
	s.key.dev = number(disk);
	s.bytes = bio->bi_iter.bi_size;
	s.follows = follows((u64)s.key.dev << 6, s.key.op, bio->bi_iter.bi_sector, s.bytes);
	if (map_update(&submitted, &key, &s, 0))
		count_drop();
	return 0;
}

SEC("tp_btf/block_bio_complete")
int bio_complete(u64 *ctx)
{
	u64 key = ctx[1], now = ktime_ns();
	struct started *s = map_lookup(&submitted, &key), of;
	struct histogram *h;

	if (!s)
		return 0;
	of = *s;
	map_delete(&submitted, &key);
	h = find(&of.key);
	if (!h)
		return 0;
	count(h->total, now - of.ns);
	if (of.bytes) {
		count_order(h, of.follows);
		count_size(h, of.bytes);
	}
	mark_dirty();
	return 0;
}
