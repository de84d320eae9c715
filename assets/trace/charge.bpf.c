/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * I/O of each process: requests, bytes and times by process, control group, device and kind, and writeback by the
 * process that dirtied the pages.
 *
 * A request belongs to the process that submits it (block_io_start; before 6.5 the process that inserts or issues it)
 * and to the control group of its bio, which for writeback under cgroup v2 is that of the dirtying process. Writes
 * from the page cache are counted a second time, bio by bio, for the process that last dirtied the file, even after it
 * has exited.
 *
 * Only request-based devices are seen, not bio-based ones (zram, dm, md).
 */
#include "block.h"
#include "drops.h"
#include "dirty_flag.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* 1 if the tracepoint has the queue as its first argument (before 5.11); the loader sets it from the kernel's
 * BTF. */
const volatile u8 RQ_INSERT_QUEUE = 0;
const volatile u8 RQ_ISSUE_QUEUE = 0;
/* 1 if there are more CPUs than shards, so that two CPUs may update one account at once. */
const volatile u8 SHARED = 1;

static u32 (*const this_cpu)(void) = (void *)8;

#define FLAG(name) (1u << __builtin_preserve_enum_value(*(typeof(enum req_flag_bits) *)name, 1))

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct kernfs_node {
	u64 id;
};
struct cgroup {
	struct kernfs_node *kn;
};
struct cgroup_subsys_state {
	struct cgroup *cgroup;
};
struct blkcg {
	struct cgroup_subsys_state css;
};
struct blkcg_gq {
	struct blkcg *blkcg;
};
struct inode {
	unsigned short i_mode;
};
struct address_space {
	struct inode *host;
};
struct page {
	unsigned long flags;
	unsigned long compound_head;
	struct address_space *mapping;
};
struct folio {
	struct address_space *mapping;
};
struct bio_vec {
	struct page *bv_page;
};
struct task_struct {
	unsigned int flags;
	struct task_struct *group_leader;
	char comm[16];
};
struct block_device___holder {
	void *bd_holder;
};
/* Members that only this program uses, of types in kernel.h. */
struct bio___charge {
	struct bio___charge *bi_next;
	struct block_device___holder *bi_bdev;
	struct bvec_iter bi_iter;
	struct blkcg_gq *bi_blkg;
	struct bio_vec *bi_io_vec;
};
struct request___charge {
	struct bio___charge *bio;
};
#pragma clang attribute pop

enum req_flag_bits { __REQ_SYNC = 11, __REQ_IDLE = 15, __REQ_SWAP = 24 };

/* The last three count page cache (and swap) as it is written, for its dirtier; pid 0 if unknown. */
enum { READ, WRITE, FLUSH, OTHER, BACK, SWAPPED, METADATA };

/* Time buckets: two per power of two from 2^11 ns to 2^33 ns (8.6 s), as in src/model. */
#define MIN_EXP 11
#define SUB_BITS 1
#define SLOTS 44
#include "buckets.h"

struct key {
	u64 group; /* the directory's number in its hierarchy */
	u32 tgid;
	u32 dev; /* major << 20 | minor, of the whole device */
	u32 kind;
	u32 shard; /* the CPU's, so that CPUs do not fight for a cache line */
};
#define SHARDS 8
struct account {
	u64 requests;
	u64 bytes;
	u64 ns;
	u32 times[SLOTS];
};
struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, 16384);
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

/* Submitters of requests in flight: a slot for two by hash of the request, as in latency.bpf.c. */
#define PLACE_BITS 14
struct place {
	u64 rq[2];
	u64 group[2];
	u32 tgid[2];
};
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1 << PLACE_BITS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct place);
} submitted SEC(".maps");

/* Last process that dirtied each file: a slot for two by hash of the inode address. Writeback of an evicted file is
 * attributed to nobody. */
#define FILE_BITS 14
struct files {
	u64 inode[2];
	u32 tgid[2];
	u32 device[2]; /* it is a block device's own page cache */
};
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1 << FILE_BITS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct files);
} dirtiers SEC(".maps");

/* Process names, for processes that exit before the next reading. */
#define NAMES 4096
struct named {
	u32 tgid;
	char comm[16];
};
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, NAMES);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct named);
} names SEC(".maps");

#define ADD(to, n) do { if (SHARED) __sync_fetch_and_add(&(to), n); else (to) += (n); } while (0)

INLINE struct place *place_of(u64 rq)
{
	u32 at = ((rq >> 6) * 0x9e3779b97f4a7c15ULL) >> (64 - PLACE_BITS);

	return map_lookup(&submitted, &at);
}

/* Stores the name of the current process. Its main thread stores it each time, because an exec changes the name
 * after the program was read. */
INLINE void keep_name(u64 ids)
{
	u32 tgid = ids >> 32, at = tgid & (NAMES - 1);
	struct named *n = map_lookup(&names, &at);
	struct task_struct *task, *leader = 0;

	if (!n)
		return;
	if (tgid == (u32)ids) {
		get_comm(n->comm, sizeof(n->comm));
		n->tgid = tgid;
		return;
	}
	if (n->tgid == tgid)
		return;
	task = current_task();
	read_kernel(&leader, sizeof(leader), &task->group_leader);
	if (!leader || read_kernel(n->comm, sizeof(n->comm), &leader->comm))
		get_comm(n->comm, sizeof(n->comm));
	n->tgid = tgid;
}

INLINE u64 group_of(struct request *rq)
{
	if (!HAS(struct bio___charge, bi_blkg) || !HAS(struct kernfs_node, id))
		return 0;
	/* A null pointer on the way reads as 0. */
	return ((struct request___charge *)rq)->bio->bi_blkg->blkcg->css.cgroup->kn->id;
}

/* Stores who submits a request. `anew`: it was just created; otherwise the first submitter is kept. */
INLINE void submit(struct request *rq, bool anew)
{
	u64 id = id_of(rq), ids = current_ids(), group;
	struct place *p = place_of(id);
	u32 tgid = ids >> 32;

	if (!p)
		return;
	if (!anew && (p->rq[0] == id || p->rq[1] == id))
		return;
	group = group_of(rq);
	keep_name(ids);
	if (p->rq[0] && p->rq[0] != id) {
		if (!p->rq[1] || p->rq[1] == id) {
			p->rq[1] = id;
			p->group[1] = group;
			p->tgid[1] = tgid;
			return;
		}
		count_drop();
	}
	p->rq[0] = id;
	p->group[0] = group;
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
		count_drop();
	return a;
}

INLINE u32 file_place(u64 inode)
{
	return ((inode >> 6) * 0x9e3779b97f4a7c15ULL) >> (64 - FILE_BITS);
}

/* Sets tgid and kind of the key for a bio of page cache: the process that dirtied it. */
INLINE void dirtier(struct bio___charge *bio, struct key *key)
{
	struct page *page = bio->bi_io_vec->bv_page;
	unsigned long head = 0, mapping = 0, inode = 0;
	struct files *f;
	u32 at, which, device;

	key->tgid = 0;
	key->kind = BACK;
	read_kernel(&head, sizeof(head), &page->compound_head);
	/* A tail page points to the head page of its folio. */
	if (head & 1)
		page = (void *)(head - 1);
	if (HAS(struct folio, mapping))
		read_kernel(&mapping, sizeof(mapping), &((struct folio *)page)->mapping);
	else
		read_kernel(&mapping, sizeof(mapping), &page->mapping);
	/* Anonymous memory has flag bits here. */
	if (!mapping || (mapping & 3))
		return;
	read_kernel(&inode, sizeof(inode), &((struct address_space *)mapping)->host);
	if (!inode)
		return;
	at = file_place(inode);
	f = map_lookup(&dirtiers, &at);
	if (!f)
		return;
	if (f->inode[0] == inode) {
		which = f->tgid[0];
		device = f->device[0];
	} else if (f->inode[1] == inode) {
		which = f->tgid[1];
		device = f->device[1];
	} else
		return;
	if (!device) {
		key->tgid = which;
		return;
	}
	/* Pages of a block device itself: metadata of the file system on it, or, if nobody has claimed the device,
	 * written directly. */
	if (HAS(struct block_device___holder, bd_holder) && HAS(struct bio___charge, bi_bdev) && !bio->bi_bdev->bd_holder)
		key->tgid = which;
	else
		key->kind = METADATA;
}

/* Further bios of a request are attributed like the last of these. */
#define MOST_BIOS 32

INLINE void written_back(struct request *rq, struct key *key, u32 bytes)
{
	struct bio___charge *bio = ((struct request___charge *)rq)->bio;
	u32 size, i, swap = rq->cmd_flags & FLAG(__REQ_SWAP);
	struct account *a;

	for (i = 0; i < MOST_BIOS && bio && bytes; i++) {
		size = bio->bi_iter.bi_size;
		if (swap) {
			key->tgid = 0;
			key->kind = SWAPPED;
		} else
			dirtier(bio, key);
		bio = bio->bi_next;
		if (size > bytes || !bio || i == MOST_BIOS - 1)
			size = bytes;
		bytes -= size;
		a = account(key);
		if (a) {
			ADD(a->requests, 1);
			ADD(a->bytes, size);
		}
	}
}

/* Looks up who submitted a request; `last` removes the entry. Returns false if unknown. */
INLINE bool owner(u64 rq, struct key *key, bool last)
{
	struct place *p = place_of(rq);

	if (!p)
		return 0;
	if (p->rq[0] == rq) {
		key->group = p->group[0];
		key->tgid = p->tgid[0];
		if (last)
			p->rq[0] = 0;
		return 1;
	}
	if (p->rq[1] == rq) {
		key->group = p->group[1];
		key->tgid = p->tgid[1];
		if (last)
			p->rq[1] = 0;
		return 1;
	}
	return 0;
}

/* Kinds as in /proc/diskstats. */
INLINE u32 kind(u32 flags, u32 bytes)
{
	switch (flags & 0xff) {
	case 0: return READ;
	case 1: /* write */
		/* A flush is a write without data. */
		return bytes ? WRITE : FLUSH;
	case 7: /* zone append; write same in old kernels */
	case 9: /* write zeroes */
		return WRITE;
	default: return OTHER;
	}
}

SEC("tp_btf/block_rq_complete")
int rq_complete(u64 *ctx)
{
	struct request *rq = (void *)ctx[0];
	u64 now = ktime_ns(), began, at;
	u32 done = ctx[2], left = rq->__data_len, flags = rq->cmd_flags, direct;
	bool last = !done || done >= left;
	struct gendisk *disk;
	struct account *a;
	struct key key;

	if (!owner(id_of(rq), &key, last))
		return 0;
	key.kind = kind(flags, left);
	if (key.kind == OTHER)
		return 0;
	if (HAS(struct request___old, rq_disk))
		disk = ((struct request___old *)rq)->rq_disk;
	else
		disk = rq->q->disk;
	if (!disk)
		return 0;
	key.dev = number(disk);
	key.shard = this_cpu() & (SHARDS - 1);
	a = account(&key);
	if (a) {
		ADD(a->bytes, done);
		began = rq->start_time_ns;
		if (last)
			ADD(a->requests, 1);
		if (last && began && began < now) {
			ADD(a->ns, now - began);
			at = bucket(now - began);
			OPAQUE(at);
			if (at < SLOTS)
				ADD(a->times[at], 1);
		}
	}
	direct = FLAG(__REQ_SYNC) | FLAG(__REQ_IDLE);
	if (key.kind == WRITE && (flags & direct) != direct)
		written_back(rq, &key, done);
	mark_dirty();
	return 0;
}

#define PF_KTHREAD 0x00200000
/* Kernel threads that write for others (loop devices, nfsd), unlike flushers. */
#define PF_LOCAL_THROTTLE 0x00100000
#define S_IFMT 0170000
#define S_IFBLK 0060000

/* writeback_dirty_page before 5.16, with the mapping at the same position. */
SEC("tp_btf/writeback_dirty_folio")
int dirtied(u64 *ctx)
{
	struct address_space *mapping = (void *)ctx[1];
	u64 inode = 0, ids = current_ids();
	u32 tgid = ids >> 32, at, flags = 0, one;
	struct task_struct *task;
	struct files *f;

	if (!mapping)
		return 0;
	read_kernel(&inode, sizeof(inode), &mapping->host);
	if (!inode)
		return 0;
	at = file_place(inode);
	f = map_lookup(&dirtiers, &at);
	if (!f)
		return 0;
	one = f->inode[0] != inode;
	if (one && f->inode[1] != inode) {
		/* A new file; the first entry of the slot moves to the second place. */
		f->inode[1] = f->inode[0];
		f->tgid[1] = f->tgid[0];
		f->device[1] = f->device[0];
		f->inode[0] = inode;
		f->device[0] = (mapping->host->i_mode & S_IFMT) == S_IFBLK;
		f->tgid[0] = tgid;
		keep_name(ids);
		return 0;
	}
	if ((one ? f->tgid[1] : f->tgid[0]) == tgid)
		return 0;
	/* A flusher that could not write a page dirties it again: the owner stays. */
	task = current_task();
	read_kernel(&flags, sizeof(flags), &task->flags);
	if ((flags & PF_KTHREAD) && !(flags & PF_LOCAL_THROTTLE))
		return 0;
	if (one)
		f->tgid[1] = tgid;
	else
		f->tgid[0] = tgid;
	keep_name(ids);
	return 0;
}
