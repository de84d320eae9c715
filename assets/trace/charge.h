/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * I/O of each process: requests, bytes and times by process, control group, device and kind, and writeback by the
 * process that dirtied the pages.
 *
 * A request belongs to the process that submits it (block_io_start; before 6.5 the process that inserts or issues it)
 * and to the control group of its bio, which for writeback under cgroup v2 is that of the dirtying process. Writes
 * from the page cache are counted a second time, bio by bio, for the process that last dirtied the file, even after it
 * has exited: with their time if another process submits them, as a flusher does.
 *
 * Of devices that take bios (zram, dm, md) each bio is counted in the same way, with STACKED in its kind: what dm and md get
 * reaches the disks below as well.
 */
#pragma once

/* Of the requests that are neither read, write nor flush, discards are counted. */
#define DISCARDED OTHER
/* These count page cache (and swap) as it is written, for its dirtier; pid 0 if unknown. OWN_BACK: which submits it itself,
 * as by a sync. */
enum { BACK = OTHER + 1, SWAPPED, METADATA, OWN_BACK, STACKED = 16 };

struct key {
	u64 group; /* the directory's number in its hierarchy */
	u32 tgid;
	u32 dev; /* major << 20 | minor, of the whole device */
	u32 kind;
	u32 shard; /* the CPU's, so that CPUs do not fight for a cache line */
};
#define MAX_ACCOUNTS 16384
#define ACCOUNT_DROPS 1
#include "account.h"
#include "owner.h"

/* As `dirty` in dirty_flag.h, for the accounts. */
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} accounts_dirty SEC(".maps");

INLINE void mark_accounts_dirty(void)
{
	u32 zero = 0, *is_dirty = map_lookup(&accounts_dirty, &zero);

	if (is_dirty && !*is_dirty)
		*is_dirty = 1;
}

INLINE u64 group_of_bio(struct bio___owner *bio)
{
	if (!HAS(struct bio___owner, bi_blkg) || !HAS(struct kernfs_node, id))
		return 0;
	/* A null pointer on the way reads as 0. */
	return bio->bi_blkg->blkcg->css.cgroup->kn->id;
}

INLINE u64 group_of(struct request *rq)
{
	return group_of_bio(((struct request___owner *)rq)->bio);
}

/* Sets tgid and kind of the key for a bio of page cache: the process that dirtied it. */
INLINE void dirtier(struct bio___owner *bio, struct key *key)
{
	u64 page = 0, inode;
	u32 which, device;

	read_kernel(&page, sizeof(page), &bio->bi_io_vec->bv_page);
	inode = page_inode(page);
	key->tgid = 0;
	key->kind = BACK;
	if (!inode || !find_dirtier(inode, &which, &device))
		return;
	/* Pages of a block device itself: metadata of the file system on it, or, if nobody has claimed the device,
	 * written directly. */
	if (device && is_claimed(bio))
		key->kind = METADATA;
	else
		key->tgid = which;
}

/* Whether it writes what no process waits for at once: page cache, not direct I/O. */
INLINE bool is_cached_write(u32 flags)
{
	u32 direct = FLAG(__REQ_SYNC) | FLAG(__REQ_IDLE);

	return (flags & direct) != direct;
}

/* Sets tgid and kind of the key for a bio that writes page cache, which `submitter` submits. */
INLINE void set_dirtier(struct bio___owner *bio, u32 flags, struct key *key, u32 submitter)
{
	if (flags & FLAG(__REQ_SWAP)) {
		key->tgid = 0;
		key->kind = SWAPPED;
		return;
	}
	dirtier(bio, key);
	if (key->kind == BACK && key->tgid == submitter)
		key->kind = OWN_BACK;
}

/* Further bios of a request are attributed like the last of these. */
#define MOST_BIOS 32

INLINE void written_back(struct request *rq, struct key *key, u32 bytes, u64 took)
{
	struct bio___owner *bio = ((struct request___owner *)rq)->bio;
	u32 size, i, all = bytes, submitter = key->tgid;
	struct account *a;

	for (i = 0; i < MOST_BIOS && bio && bytes; i++) {
		size = bio->bi_iter.bi_size;
		set_dirtier(bio, rq->cmd_flags, key, submitter);
		bio = bio->bi_next;
		if (size > bytes || !bio || i == MOST_BIOS - 1)
			size = bytes;
		bytes -= size;
		a = account(key);
		if (a) {
			ADD(a->requests, 1);
			ADD(a->bytes, size);
			/* Of a request with pages of several, each has its part of the time. */
			if (key->kind == BACK)
				ADD(a->ns, size == all ? took : took * size / all);
		}
	}
}

INLINE bool is_discard(u32 flags)
{
	return (flags & 0xff) == 3 || (flags & 0xff) == 5 /* secure erase */;
}

/* Counts what has completed of a request; `last`: all of it, in the time `took`, 0 if that is unknown. `key` has the
 * process, the group and the device; its kind is set here. */
INLINE void charge(struct request *rq, struct key *key, u32 done, u32 left, bool last, u64 took)
{
	u32 flags = rq->cmd_flags;
	struct account *a;

	key->kind = kind(flags, left);
	if (key->kind == DISCARDED && !is_discard(flags))
		return;
	key->shard = this_shard();
	a = account(key);
	if (a) {
		ADD(a->bytes, done);
		if (last)
			count_request(a, took);
	}
	if (key->kind == WRITE && done && is_cached_write(flags))
		written_back(rq, key, done, last ? took : 0);
	mark_accounts_dirty();
}

/* Counts a completed bio of a device that takes bios. `key` has the submitter, the group, the device and the kind. */
INLINE void charge_bio(struct bio___owner *bio, struct key *key, u32 flags, u32 bytes, u64 took)
{
	u32 submitter = key->tgid, kind = key->kind;
	struct account *a;

	key->shard = this_shard();
	key->kind = kind | STACKED;
	a = account(key);
	if (a) {
		ADD(a->bytes, bytes);
		count_request(a, took);
	}
	if (kind == WRITE && bytes && is_cached_write(flags)) {
		set_dirtier(bio, flags, key, submitter);
		kind = key->kind;
		key->kind = kind | STACKED;
		a = account(key);
		if (a) {
			ADD(a->requests, 1);
			ADD(a->bytes, bytes);
			if (kind == BACK)
				ADD(a->ns, took);
		}
	}
	mark_accounts_dirty();
}
