/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * I/O of each file at the device: requests, bytes and times by device, file, process and direction.
 *
 * A completed request is attributed bio by bio: page cache to the file whose pages they are, direct I/O to the file of
 * its control block, which the bio points to. What belongs to no file is told apart: metadata of a file system, its
 * journal, swap, and I/O on a device that nobody has claimed. The process is the submitter, or for page cache the one
 * that last dirtied the file.
 *
 * These programs are attached only on request. Only devices that take requests are seen.
 */
#include "dirty_flag.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum { READ, WRITE, FLUSH, OTHER };
/* src/model/file_io has the same order. */
enum { FILE, META, JOURNAL, SWAP, DEVICE, FLUSHES, UNKNOWN };

struct key {
	u64 ino;
	u32 fs; /* device number of its file system; 0 and no inode without a file */
	u32 dev; /* major << 20 | minor, of the whole device */
	u32 tgid;
	u32 kind; /* class << 1 | direction */
	u32 shard;
	u32 generation; /* tells a new file with the number of a deleted one apart */
};
#define MAX_ACCOUNTS 8192
#define ACCOUNT_DROPS 0
#include "account.h"
#include "completed.h"
#include "submitters.h"
#include "paths.h"

/* Addresses of functions that end bios, which say what bi_private points to; 0 if unknown. The loader sets them from
 * /proc/kallsyms. */
const volatile u64 IOMAP_DIO_END = 0;
const volatile u64 DIO_END = 0;
const volatile u64 DIO_END_AIO = 0;
const volatile u64 XFS_LOG_END = 0;
const volatile u64 BTRFS_END = 0;
const volatile u64 BTRFS_FIRST_MIRROR_END = 0;
const volatile u64 BTRFS_MIRROR_END = 0;

enum pageflags { PG_swapcache = 10 };
#define HAS_SWAPCACHE __builtin_preserve_enum_value(*(typeof(enum pageflags) *)PG_swapcache, 0)
#define PG_SWAPCACHE_BIT __builtin_preserve_enum_value(*(typeof(enum pageflags) *)PG_swapcache, 1)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct file {
	struct inode *f_inode;
};
struct kiocb {
	struct file *ki_filp;
};
struct iomap_dio {
	struct kiocb *iocb;
};
struct dio {
	struct inode *inode;
};
struct btrfs_inode {
	struct inode vfs_inode;
};
struct btrfs_bio {
	struct btrfs_inode *inode;
	struct bio___owner bio;
};
struct btrfs_io_context {
	struct bio___owner *orig_bio;
};
struct memdesc {
	unsigned long f;
};
struct page___memdesc {
	struct memdesc flags; /* since 6.18 */
};
struct btrfs_io_stripe {
	struct btrfs_io_context *bioc;
};
#pragma clang attribute pop

/* A bio at work, and what its request says. In a map, because functions that the verifier checks one by one take no
 * pointers in old kernels. */
struct work {
	struct key key;
	u64 end; /* the function that ends the bio */
	u64 private;
	u64 bio;
	u64 page; /* its first one */
	u64 took; /* since the request was allocated, with its last bytes; else 0 */
	u32 bytes;
	u32 flags;
	u32 submitter;
	u8 claimed; /* the device is, by a file system or another device */
	u8 busy; /* an interrupt must not overwrite it, before 6.1 */
	u8 write;
	u8 direct; /* a write that is not of page cache */
	u8 flush; /* it has no data */
	u8 counts; /* the request is counted with this bio */
};
struct {
	MAP_UINT(type, MAP_PERCPU_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct work);
} work SEC(".maps");

INLINE struct work *this_work(void)
{
	u32 zero = 0;

	return map_lookup(&work, &zero);
}

/* Stores the path of a file when it is seen for the first time. */
__attribute__((noinline)) int keep_path(u64 inode)
{
	struct file_key key = {};
	struct work *w = this_work();

	if (!w)
		return 0;
	key.ino = w->key.ino;
	key.fs = w->key.fs;
	key.generation = w->key.generation;
	if (!map_lookup(&paths, &key))
		store_path(&key, entry_of(inode));
	return 0;
}

/* Returns the inode of a btrfs bio. */
INLINE u64 btrfs_inode(u64 bio)
{
	struct btrfs_inode *inode = 0;

	if (!HAS(struct btrfs_bio, bio) || !HAS(struct btrfs_bio, inode) || !bio)
		return 0;
	GET(inode, ((struct btrfs_bio *)(bio - OFFSET(struct btrfs_bio, bio)))->inode);
	return inode ? (u64)inode + OFFSET(struct btrfs_inode, vfs_inode) : 0;
}

/* Returns the inode of a bio whose pages do not tell it; 0 if it is not known to be of a file. */
INLINE u64 private_inode(struct work *w)
{
	u64 end = w->end, private = w->private, inode = 0;
	struct kiocb *iocb = 0;
	struct file *file = 0;

	if (HAS(struct iomap_dio, iocb) && end == IOMAP_DIO_END) {
		GET(iocb, ((struct iomap_dio *)private)->iocb);
		GET(file, iocb->ki_filp);
		GET(inode, file->f_inode);
	} else if (HAS(struct dio, inode) && (end == DIO_END || end == DIO_END_AIO)) {
		GET(inode, ((struct dio *)private)->inode);
	} else if (end == BTRFS_END || end == BTRFS_FIRST_MIRROR_END) {
		inode = btrfs_inode(w->bio);
	} else if (HAS(struct btrfs_io_stripe, bioc) && end == BTRFS_MIRROR_END) {
		struct btrfs_io_context *context = 0;

		GET(context, ((struct btrfs_io_stripe *)private)->bioc);
		GET(private, context->orig_bio);
		inode = btrfs_inode(private);
	}
	return inode;
}

/* What a page says. */
struct owned {
	u64 head; /* of its folio */
	u64 inode; /* the address of that whose page cache it is; 0 for other memory */
	bool anonymous; /* memory of a program that belongs to no file */
};

INLINE struct owned owned_page(u64 page)
{
	struct owned o = { .head = head_of(page) };
	unsigned long mapping = mapping_of(o.head);

	o.anonymous = mapping & 1;
	o.inode = host_of(mapping);
	return o;
}

/* Whether an anonymous page is in the swap cache. */
INLINE bool is_swap(u64 head)
{
	unsigned long flags = 0;

	if (!HAS_SWAPCACHE)
		return 0;
	if (HAS(struct page___memdesc, flags.f))
		read_kernel(&flags, sizeof(flags), &((struct page___memdesc *)head)->flags.f);
	else
		read_kernel(&flags, sizeof(flags), &((struct page *)head)->flags);
	return flags >> PG_SWAPCACHE_BIT & 1;
}

INLINE bool is_jbd2(u32 tgid)
{
	u32 at = tgid & (NAMES - 1);
	struct named *n = map_lookup(&names, &at);

	return n && n->tgid == tgid && n->comm[0] == 'j' && n->comm[1] == 'b' && n->comm[2] == 'd' && n->comm[3] == '2';
}

/* What a bio without a file is. */
INLINE u32 class_of(struct work *w, struct owned *page, bool is_device)
{
	/* No file system, and no swap, is on it. */
	if (!w->claimed)
		return DEVICE;
	if (is_device)
		return is_jbd2(w->submitter) ? JOURNAL : META;
	if ((w->flags & FLAG(__REQ_SWAP)) || (page->anonymous && is_swap(page->head)))
		return SWAP;
	if (w->flags & FLAG(__REQ_META))
		return META;
	/* Direct I/O from a program's memory, though not of a file. */
	if (IOMAP_DIO_END && page->anonymous)
		return DEVICE;
	return UNKNOWN;
}

/* Whether an inode is that of the metadata of a btrfs. The kernel leaves its mode at what the memory held before. */
INLINE bool is_btrfs_tree(u64 inode)
{
	unsigned long ino = 0, magic = 0;
	struct super_block *sb = 0;

	GET(ino, ((struct inode *)inode)->i_ino);
	if (ino != 1 /* BTRFS_BTREE_INODE_OBJECTID */)
		return 0;
	GET(sb, ((struct inode *)inode)->i_sb);
	GET(magic, sb->s_magic);
	return magic == 0x9123683e; /* BTRFS_SUPER_MAGIC */
}

/* Sets file, process and kind of the key; returns the inode's address, 0 if the bio belongs to no file. */
INLINE u64 identify(struct work *w)
{
	u32 dirtier, device, class;
	unsigned long ino = 0;
	unsigned short mode = 0;
	struct super_block *sb = 0;
	struct owned page = {};
	bool is_tree;
	u64 inode;

	w->key.ino = 0;
	w->key.fs = 0;
	w->key.generation = 0;
	w->key.tgid = w->submitter;
	if (w->flush) {
		w->key.kind = FLUSHES << 1 | 1;
		return 0;
	}
	if (w->end && w->end == XFS_LOG_END) {
		w->key.kind = JOURNAL << 1 | w->write;
		return 0;
	}
	/* Only the device's own page cache tells more than that nobody has claimed it: who dirtied it. */
	if (!w->claimed && (!w->write || w->direct)) {
		w->key.kind = DEVICE << 1 | w->write;
		return 0;
	}
	inode = w->end ? private_inode(w) : 0;
	if (!inode) {
		page = owned_page(w->page);
		inode = page.inode;
		if (w->write && inode && find_dirtier(inode, &dirtier, &device))
			w->key.tgid = dirtier;
	}
	if (inode)
		GET(mode, ((struct inode *)inode)->i_mode);
	is_tree = inode && (!mode || is_btrfs_tree(inode));
	if (!inode || is_tree || (mode & S_IFMT) == S_IFBLK) {
		class = is_tree ? META : class_of(w, &page, inode != 0);
		if (class != DEVICE)
			w->key.tgid = w->submitter;
		w->key.kind = class << 1 | w->write;
		return 0;
	}
	GET(ino, ((struct inode *)inode)->i_ino);
	GET(sb, ((struct inode *)inode)->i_sb);
	GET(w->key.fs, sb->s_dev);
	GET(w->key.generation, ((struct inode___path *)inode)->i_generation);
	w->key.ino = ino;
	w->key.kind = FILE << 1 | w->write;
	return inode;
}

/* Counts a bio. A function that is checked by itself, not again for each bio. */
__attribute__((noinline)) int count_bio(u32 unused)
{
	struct work *w = this_work();
	struct account *a;
	u64 inode;

	if (!w)
		return 0;
	inode = identify(w);
	a = map_lookup(&accounts, &w->key);
	if (!a) {
		a = account(&w->key);
		if (inode)
			keep_path(inode);
	}
	if (!a)
		return 0;
	ADD(a->bytes, w->bytes);
	if (w->counts)
		count_request(a, w->took);
	return 0;
}

/* Further bios of a request are attributed like the last of these. */
#define MOST_BIOS 128

/* Counts `bytes` of a request, of which the rest has not completed unless this is the `last` part. */
INLINE void count_files(struct request *rq, u32 bytes, bool last, bool is_known, struct completed *c)
{
	struct bio___owner *bio = ((struct request___owner *)rq)->bio;
	u32 left = rq->__data_len, flags = rq->cmd_flags, direction = kind(flags, left), size, i;
	u32 of_direct = FLAG(__REQ_SYNC) | FLAG(__REQ_IDLE);
	struct work *w;

	/* The end of a sequence of flushes and a write has no data either, but that write was counted, and its submitter
	 * forgotten, when its data was written. */
	if (direction > FLUSH || (!left && !is_known) || !bio)
		return;
	w = this_work();
	if (!w)
		return;
	if (w->busy) {
		count_drop();
		return;
	}
	w->busy = 1;
	w->key.dev = c->dev;
	w->key.shard = this_shard();
	w->flags = flags;
	w->submitter = c->tgid;
	w->write = direction != READ;
	w->direct = (flags & of_direct) == of_direct;
	w->flush = direction == FLUSH;
	w->claimed = is_claimed(bio);
	w->took = last ? c->took : 0;
	/* A request and its time belong to the file of its first bio. */
	w->counts = last;
	for (i = 0; i < MOST_BIOS && bio && (bytes || w->counts); i++) {
		size = bio->bi_iter.bi_size;
		w->end = (u64)bio->bi_end_io;
		w->private = (u64)bio->bi_private;
		w->bio = (u64)bio;
		w->page = (u64)bio->bi_io_vec->bv_page;
		bio = bio->bi_next;
		if (size > bytes || !bio || i == MOST_BIOS - 1)
			size = bytes;
		bytes -= size;
		w->bytes = size;
		count_bio(0);
		w->counts = 0;
	}
	w->busy = 0;
	mark_dirty();
}

/* Called after the program that counts requests, which has looked all this up. */
SEC("tp_btf/block_rq_complete")
int after_complete(u64 *ctx)
{
	struct request *rq = (void *)ctx[0];
	u32 zero = 0, bytes = ctx[2], left = rq->__data_len;
	struct completed *stored = map_lookup(&completed, &zero), c;
	bool is_known;

	if (!stored || !stored->dev)
		return 0;
	c = *stored;
	is_known = (c.tgid & (KNOWN | DATA_DONE)) == KNOWN;
	c.tgid = c.tgid & KNOWN ? c.tgid & ~(KNOWN | DATA_DONE) : 0;
	count_files(rq, bytes, !bytes || bytes >= left, is_known, &c);
	return 0;
}

/* Attached by itself where it cannot be called. */
SEC("tp_btf/block_rq_complete")
int rq_complete(u64 *ctx)
{
	struct request *rq = (void *)ctx[0];
	u32 bytes = ctx[2], left = rq->__data_len;
	bool last = !bytes || bytes >= left, is_known;
	u64 began = rq->start_time_ns, now;
	struct gendisk *disk = disk_of(rq);
	struct completed c = {};

	is_known = submitter(id_of(rq), &c.tgid, last);
	if (!disk)
		return 0;
	c.dev = number(disk);
	now = last && began ? ktime_ns() : 0;
	c.took = began < now ? now - began : 0;
	count_files(rq, bytes, last, is_known, &c);
	return 0;
}
