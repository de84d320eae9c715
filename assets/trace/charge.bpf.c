/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Who does the I/O of the devices: requests, bytes and times for each process, control group, device and kind, and
 * whose pages are written back.
 *
 * A request belongs to the process in whose context it is made (block_io_start; before 6.5 when it is inserted or
 * issued) and to the control group its bio names, which for writeback under cgroup v2 is the dirtier's. What page cache it
 * writes is counted a second time, for the process that dirtied the file last: a flusher's work, a sync by another, all
 * of it, bio by bio, also after that process has ended.
 *
 * Only devices that work in requests are seen; those that take whole bios (zram, dm, md) are not.
 */
#include "block.h"
#include "lost.h"
#include "news.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* 1 where the tracepoint has the queue as its first argument (before 5.11): set by the loader from the kernel's
 * own type information. */
const volatile u8 RQ_INSERT_QUEUE = 0;
const volatile u8 RQ_ISSUE_QUEUE = 0;
/* 1 where there are more CPUs than shards, so that two may count in one account at once. */
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
/* What only this program looks at of types that kernel.h has. */
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

/* The last three are page cache (and swap) as it is written, for its dirtier; 0 where that is not known. */
enum { READ, WRITE, FLUSH, OTHER, BACK, SWAPPED, METADATA };

/* Buckets of time: two to each power of two from 2^11 ns to 2^33 ns (8.6 s). src/model/charge/times.rs has the same. */
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

/* An account as it begins: too large for the stack beside all else. */
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct account);
} empty SEC(".maps");

/* Whose requests are under way: a place for two by the hash of their address, as in latency.bpf.c. */
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

/* Who dirtied a file last: a place for two by the hash of its inode's address. What is put out is charged to nobody
 * when it is written. */
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

/* Names, for those that have ended before anybody looks. */
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

/* Keeps the name of the process that runs now. Its first thread tells it each time: an exec renames it, after what it
 * runs has been read. */
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
	/* What leads nowhere reads as 0. */
	return ((struct request___charge *)rq)->bio->bi_blkg->blkcg->css.cgroup->kn->id;
}

/* Notes whose a request is. `anew`: it has just been made; else who was noted first is right. */
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
		count_lost();
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
		count_lost();
	return a;
}

INLINE u32 file_place(u64 inode)
{
	return ((inode >> 6) * 0x9e3779b97f4a7c15ULL) >> (64 - FILE_BITS);
}

/* For whom a bio of page cache is written: sets tgid and kind of the key. */
INLINE void dirtier(struct bio___charge *bio, struct key *key)
{
	struct page *page = bio->bi_io_vec->bv_page;
	unsigned long head = 0, mapping = 0, inode = 0;
	struct files *f;
	u32 at, which, device;

	key->tgid = 0;
	key->kind = BACK;
	read_kernel(&head, sizeof(head), &page->compound_head);
	/* A part of a larger folio points to its first page. */
	if (head & 1)
		page = (void *)(head - 1);
	if (HAS(struct folio, mapping))
		read_kernel(&mapping, sizeof(mapping), &((struct folio *)page)->mapping);
	else
		read_kernel(&mapping, sizeof(mapping), &page->mapping);
	/* Anonymous memory has a mark there. */
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
	/* A device's own pages: the metadata of the file system on it, whoever touched that last; written to by hand
	 * where nobody has claimed it. */
	if (HAS(struct block_device___holder, bd_holder) && HAS(struct bio___charge, bi_bdev) && !bio->bi_bdev->bd_holder)
		key->tgid = which;
	else
		key->kind = METADATA;
}

/* More bios in one request than this are charged as the last of these. */
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

/* Whose request it is; `last`: forgotten with that. False: not known. */
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

/* Kinds as /proc/diskstats counts them. */
INLINE u32 kind(u32 flags, u32 bytes)
{
	switch (flags & 0xff) {
	case 0: return READ;
	case 1: /* write */
		/* A flush comes as a write of nothing. */
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
	note();
	return 0;
}

#define PF_KTHREAD 0x00200000
/* Kernel threads that write on behalf of somebody (loop devices, nfsd), unlike flushers. */
#define PF_LOCAL_THROTTLE 0x00100000
#define S_IFMT 0170000
#define S_IFBLK 0060000

/* Before 5.16 writeback_dirty_page, with the mapping in the same place. */
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
		/* A file not known yet; whoever was noted first here moves on. */
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
	/* A flusher that could not write a page now dirties it again: it stays whose it was. */
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
