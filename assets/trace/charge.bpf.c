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
#include "dirty_flag.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The last three count page cache (and swap) as it is written, for its dirtier; pid 0 if unknown. */
enum { READ, WRITE, FLUSH, OTHER, BACK, SWAPPED, METADATA };

struct key {
	u64 group; /* the directory's number in its hierarchy */
	u32 tgid;
	u32 dev; /* major << 20 | minor, of the whole device */
	u32 kind;
	u32 shard; /* the CPU's, so that CPUs do not fight for a cache line */
};
#define MAX_ACCOUNTS 16384
#include "account.h"
#define BY_GROUP
#include "owner.h"

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

/* Further bios of a request are attributed like the last of these. */
#define MOST_BIOS 32

INLINE void written_back(struct request *rq, struct key *key, u32 bytes)
{
	struct bio___owner *bio = ((struct request___owner *)rq)->bio;
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

SEC("tp_btf/block_rq_complete")
int rq_complete(u64 *ctx)
{
	struct request *rq = (void *)ctx[0];
	u32 done = ctx[2], left = rq->__data_len, flags = rq->cmd_flags, direct;
	bool last = !done || done >= left, sequence = last && in_flush_sequence(rq), ended = 0;
	struct gendisk *disk;
	struct account *a;
	struct key key;

	if (!owner(id_of(rq), &key, last, sequence))
		return 0;
	/* The end of a flush sequence has 0 bytes; its request is the write whose data completed before. */
	ended = key.tgid >> 31;
	key.tgid &= ~DATA_DONE;
	last = last && !sequence;
	key.kind = kind(flags, ended ? 1 : left);
	if (key.kind == OTHER)
		return 0;
	disk = disk_of(rq);
	if (!disk)
		return 0;
	key.dev = number(disk);
	key.shard = this_shard();
	a = account(&key);
	if (a) {
		ADD(a->bytes, done);
		if (last)
			count_request(a, rq->start_time_ns, ktime_ns());
	}
	direct = FLAG(__REQ_SYNC) | FLAG(__REQ_IDLE);
	if (key.kind == WRITE && done && (flags & direct) != direct)
		written_back(rq, &key, done);
	mark_dirty();
	return 0;
}
