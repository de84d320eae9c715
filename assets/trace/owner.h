/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Who dirtied each file last, and names of processes: the program that stores it, and functions that look it up. The
 * including file defines the kinds READ, WRITE, FLUSH and OTHER.
 */
#pragma once
#include "block.h"
#include "drops.h"
#include "page.h"

/* 1 if the tracepoint has the queue as its first argument (before 5.11); the loader sets it from the kernel's
 * BTF. */
const volatile u8 RQ_INSERT_QUEUE = 0;
const volatile u8 RQ_ISSUE_QUEUE = 0;
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
struct task_struct {
	unsigned int flags;
	struct task_struct *group_leader;
	char comm[16];
};
struct block_device___holder {
	void *bd_holder;
};
/* Members that only these programs use, of types in kernel.h. */
struct bio___owner {
	struct bio___owner *bi_next;
	struct block_device___holder *bi_bdev;
	struct bvec_iter bi_iter;
	struct blkcg_gq *bi_blkg;
	void *bi_end_io;
	void *bi_private;
	struct bio_vec *bi_io_vec;
};
struct request___owner {
	struct bio___owner *bio;
};
#pragma clang attribute pop

enum req_flag_bits { __REQ_SYNC = 11, __REQ_META = 12, __REQ_IDLE = 15, __REQ_SWAP = 24 };
#define FLAG(name) (1u << __builtin_preserve_enum_value(*(typeof(enum req_flag_bits) *)name, 1))

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

INLINE u32 file_place(u64 inode)
{
	return ((inode >> 6) * 0x9e3779b97f4a7c15ULL) >> (64 - FILE_BITS);
}

INLINE bool find_dirtier(u64 inode, u32 *tgid, u32 *device)
{
	u32 at = file_place(inode);
	struct files *f = map_lookup(&dirtiers, &at);

	if (!f)
		return 0;
	if (f->inode[0] == inode) {
		*tgid = f->tgid[0];
		*device = f->device[0];
		return 1;
	}
	if (f->inode[1] == inode) {
		*tgid = f->tgid[1];
		*device = f->device[1];
		return 1;
	}
	return 0;
}

/* Whether a file system or another device has claimed the device that a bio goes to. */
INLINE bool is_claimed(struct bio___owner *bio)
{
	return !HAS(struct block_device___holder, bd_holder) || !HAS(struct bio___owner, bi_bdev) || bio->bi_bdev->bd_holder;
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
