/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Request latency: a histogram for each device and kind of request; and the I/O of each process (charge.h).
 *
 * Both are in one object, because a second program at a tracepoint costs as much as what it counts.
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
#include "dirty_flag.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* 1 if the tracepoint has the queue as its first argument (before 5.11); the loader sets it from the kernel's
 * BTF. */
const volatile u8 BIO_QUEUE_QUEUE = 0;
/* 1 if I/O of processes is counted, and 1 if block_io_start is not there; the loader sets them. */
const volatile u8 WITH_ACCOUNTS = 1;
const volatile u8 SUBMITTED_AT_ISSUE = 0;

/* 1 if the flags of requests are an enumeration; the loader looks for its enumerators. */
const volatile u8 RQF_ENUM = 0;

/* Size buckets: one per power of two from 512 bytes; all sizes from 1 MiB share one. */
#define SIZES 12

enum { READ, WRITE, FLUSH, OTHER };

/* Counters of drops: of the histograms, and of the accounts (ACCOUNT_DROPS). */
#define DROPS 2
#include "charge.h"
#include "completed.h"

/* Buckets: 16 per power of two from 2^8 ns to 2^36 ns (68 s). src/model/latency.rs has the same. */
#define SUB_BITS 4
#define MIN_EXP 8
#define SLOTS 448

struct series {
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
	struct series key;
	u32 bytes;
	u32 follows;
	u64 group; /* the control group of the submitter */
	u32 tgid;
	u32 flags;
};

struct {
	MAP_UINT(type, MAP_PERCPU_HASH);
	MAP_UINT(map_flags, MAP_NO_PREALLOC);
	MAP_UINT(max_entries, 4096);
	MAP_TYPE(key, struct series);
	MAP_TYPE(value, struct histogram);
} histograms SEC(".maps");

struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, 64);
	MAP_TYPE(key, struct series);
	MAP_TYPE(value, u32);
} unknown SEC(".maps");

/* Requests in flight: a slot for two by address of the request. An array needs no helper call, takes no lock and is never
 * full; a third request in a slot evicts the first, which is counted when that completes.
 *
 * The CPU that completes a request is often another one than the CPU that submits the next one. So the first entry of a slot
 * is left as it is when its request completes, as long as the second one is free: the submitter then finds the line of memory
 * in its own cache, where it would wait for the other CPU's. An entry that is taken over unfinished is noticed when its
 * request completes without one. */
#define PLACE_BITS 15
/* Slots for requests of one page of memory are side by side: few pages are touched for many requests. */
#define PAGE_PLACES 6
struct flight {
	u64 rq; /* 0 if this is free; of the first entry, the last request, which may have completed */
	u64 issued; /* 0 before that; the lowest bit tells whether it continues a stream */
	u64 group; /* the control group of the submitter */
	u32 tgid; /* the submitter, with the bits below */
	u32 pad;
};
struct place {
	struct flight of[2];
};
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1 << PLACE_BITS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct place);
} flights SEC(".maps");

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
} bios SEC(".maps");

INLINE void count(u32 *slots, u64 ns)
{
	u64 at = bucket(ns, exponent(ns), MIN_EXP, SUB_BITS, SLOTS);

	OPAQUE(at);
	if (at < SLOTS)
		slots[at]++;
}

INLINE struct histogram *find(struct series *key)
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
INLINE u32 operation(u32 flags)
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
	u32 page = ((rq >> (6 + PAGE_PLACES)) * 0x9e3779b97f4a7c15ULL) >> (64 - PLACE_BITS + PAGE_PLACES);
	u32 at = page << PAGE_PLACES | (rq >> 6 & ((1 << PAGE_PLACES) - 1));

	return map_lookup(&flights, &at);
}

/* Returns the entry of a request in its slot, null without one. */
INLINE struct flight *flight_of(struct place *p, u64 rq)
{
	if (p->of[0].rq == rq)
		return &p->of[0];
	return p->of[1].rq == rq ? &p->of[1] : 0;
}

/* Frees the entry of a request that has completed. Where the submitter makes an entry anew, the first one may stay. */
INLINE void leave(struct place *p, struct flight *f)
{
	if (SUBMITTED_AT_ISSUE || f != &p->of[0] || p->of[1].rq)
		f->rq = 0;
}

/* Since when requests are followed from their submission; 0 until all programs are attached. User space sets it. */
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} followed_since SEC(".maps");

/* Counts a request with data whose issue or submitter was not found. */
INLINE void count_lost(struct request *rq, u64 issued, u32 tgid)
{
	u64 *since;
	u32 zero = 0;

	if (SUBMITTED_AT_ISSUE || (issued && (!WITH_ACCOUNTS || tgid & KNOWN)) || operation(rq->cmd_flags) == OTHER)
		return;
	since = map_lookup(&followed_since, &zero);
	if (!since || !*since || rq->start_time_ns < *since)
		return;
	if (!issued)
		count_drop();
	if (WITH_ACCOUNTS && !(tgid & KNOWN))
		count_drop_of(ACCOUNT_DROPS);
}

/* Returns the entry of a request, which is made if there is none. */
INLINE struct flight *enter(u64 rq)
{
	struct place *p = place_of(rq);
	struct flight *f;

	if (!p)
		return 0;
	if (p->of[0].rq == rq)
		return &p->of[0];
	if (p->of[1].rq == rq)
		return &p->of[1];
	f = &p->of[0];
	if (f->rq) {
		if (!p->of[1].rq)
			f = &p->of[1];
		else if (SUBMITTED_AT_ISSUE) {
			count_drop();
			count_drop_of(ACCOUNT_DROPS);
		}
	}
	f->rq = rq;
	f->issued = 0;
	f->tgid = 0;
	return f;
}

/* A program of another object that runs after the one of this object, which costs less than a second one at the
 * tracepoint: the kernel calls each of several by a pointer. */
struct {
	MAP_UINT(type, MAP_PROGRAMS);
	MAP_UINT(max_entries, 1);
	MAP_UINT(key_size, 4);
	MAP_UINT(value_size, 4);
} after_start SEC(".maps");
struct {
	MAP_UINT(type, MAP_PROGRAMS);
	MAP_UINT(max_entries, 1);
	MAP_UINT(key_size, 4);
	MAP_UINT(value_size, 4);
} after_complete SEC(".maps");

INLINE void hand_over(u32 tgid, u32 dev, u64 took)
{
	u32 zero = 0;
	struct completed *c = map_lookup(&completed, &zero);

	if (!c)
		return;
	c->tgid = tgid;
	c->dev = dev;
	c->took = took;
}

/* Stores who submits a request. */
INLINE void submit(struct flight *f, struct request *rq)
{
	u64 ids = current_ids();

	keep_name(ids);
	f->tgid = (ids >> 32) | KNOWN;
	f->group = group_of(rq);
}

SEC("tp_btf/block_io_start")
int io_start(u64 *ctx)
{
	struct request *rq = (void *)ctx[0];
	struct flight *f = enter(id_of(rq));

	if (f) {
		f->issued = 0;
		submit(f, rq);
	}
	tail_call(ctx, &after_start, 0);
	return 0;
}

SEC("tp_btf/block_rq_insert")
int rq_insert(u64 *ctx)
{
	struct request *rq = (void *)subject(ctx, RQ_INSERT_QUEUE);
	struct flight *f = enter(id_of(rq));

	if (f && !f->tgid)
		submit(f, rq);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int rq_issue(u64 *ctx)
{
	struct request *rq = (void *)subject(ctx, RQ_ISSUE_QUEUE);
	u64 now = ktime_ns() & ~1ULL;
	struct flight *f = enter(id_of(rq));

	if (!f)
		return 0;
	f->issued = now | follows(hardware_queue(rq), operation(rq->cmd_flags), rq->__sector, rq->__data_len);
	if (WITH_ACCOUNTS && SUBMITTED_AT_ISSUE && !f->tgid)
		submit(f, rq);
	return 0;
}

/* Counts a request, or the data of one that a flush follows (not `last`). `took`: since it was allocated. */
INLINE void count_latency(struct request *rq, u32 dev, u32 left, u64 issued, u64 now, bool last, u64 took)
{
	struct series of = { .dev = dev, .op = operation(rq->cmd_flags) };
	struct histogram *h;

	if (of.op == OTHER)
		return;
	/* Request-based dm (multipath) completes a request whose data its clones have completed before. */
	if (!left && of.op != FLUSH && !((struct request___owner *)rq)->bio)
		return;
	h = find(&of);
	if (!h)
		return;
	/* 0 for a flush without data, and at the end of a flush sequence, whose data was counted before. */
	if (left) {
		count_size(h, left);
		if (issued)
			count_order(h, issued & 1);
	}
	if (last) {
		if (took)
			count(h->total, took);
		/* Unknown for a request issued before loading, and for a flush without data, which is never issued. */
		if (issued && issued < now)
			count(h->service, now - issued);
	}
	mark_dirty();
}

INLINE void complete(struct request *rq, u32 done)
{
	u64 now = ktime_ns(), began, took, in_all, issued = 0;
	u32 left = rq->__data_len, tgid = 0;
	/* After a partial completion the rest is still in flight. */
	bool partial = done && done < left, sequence = !partial && in_flush_sequence(rq, RQF_ENUM), last = !partial && !sequence;
	u64 id = id_of(rq);
	struct place *p = place_of(id);
	struct flight *f = p ? flight_of(p, id) : 0;
	struct gendisk *disk;
	struct key key;

	key.group = 0;
	if (p && f) {
		issued = f->issued;
		tgid = f->tgid;
		key.group = f->group;
		if (sequence)
			f->tgid = tgid | (tgid & KNOWN ? DATA_DONE : 0);
		else if (last)
			leave(p, f);
	}
	began = start_of(rq, RQF_ENUM);
	took = in_all = began && began < now ? now - began : 0;
	/* What is not counted has the time in service at least. */
	if (!took && issued && issued < now)
		took = now - issued;
	disk = disk_of(rq);
	key.dev = disk ? number(disk) : 0;
	hand_over(tgid, key.dev, took);
	if (!disk)
		return;
	if (!partial) {
		count_latency(rq, key.dev, left, issued, now, last, in_all);
		if (left)
			count_lost(rq, issued, tgid);
	}
	if (!WITH_ACCOUNTS || !(tgid & KNOWN))
		return;
	key.tgid = tgid & ~(KNOWN | DATA_DONE);
	/* The end of a flush sequence has 0 bytes; its request is the write whose data completed before. */
	charge(rq, &key, done, tgid & DATA_DONE ? 1 : left, last, took);
}

SEC("tp_btf/block_rq_complete")
int rq_complete(u64 *ctx)
{
	complete((void *)ctx[0], ctx[2]);
	tail_call(ctx, &after_complete, 0);
	return 0;
}

SEC("tp_btf/block_bio_queue")
int bio_queue(u64 *ctx)
{
	u64 ids, key = subject(ctx, BIO_QUEUE_QUEUE);
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
	s.key.op = operation(bio->bi_opf);
	if (s.key.op == WRITE && !bio->bi_iter.bi_size)
		s.key.op = FLUSH;
	/* Discards are counted by process only. */
	if (s.key.op == OTHER && !(WITH_ACCOUNTS && is_discard(bio->bi_opf)))
		return 0;
	s.key.dev = number(disk);
	s.bytes = bio->bi_iter.bi_size;
	if (WITH_ACCOUNTS) {
		ids = current_ids();
		keep_name(ids);
		s.tgid = ids >> 32;
		s.group = group_of_bio((void *)bio);
		s.flags = bio->bi_opf;
	}
	s.follows = follows((u64)s.key.dev << 6, s.key.op, bio->bi_iter.bi_sector, s.bytes);
	if (map_update(&bios, &key, &s, 0))
		count_drop();
	return 0;
}

SEC("tp_btf/block_bio_complete")
int bio_complete(u64 *ctx)
{
	u64 key = ctx[1], now = ktime_ns();
	struct started *s = map_lookup(&bios, &key), of;
	struct histogram *h;

	if (!s)
		return 0;
	of = *s;
	map_delete(&bios, &key);
	if (WITH_ACCOUNTS) {
		struct key account = { .group = of.group, .tgid = of.tgid, .dev = of.key.dev, .kind = of.key.op };

		charge_bio((void *)ctx[1], &account, of.flags, of.bytes, now - of.ns);
	}
	if (of.key.op == OTHER)
		return 0;
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
