/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Syncs by process and file, with their duration: fsync and related calls, counted at system call entry and
 * exit.
 *
 * System call tracepoints cost 10 to 50 ns on every system call of the machine, so they are attached only on
 * request. Syncs by io_uring are only counted; synchronous writes (O_SYNC, O_DSYNC) are not seen.
 *
 * The file is looked up at entry; its path is read once for each process, file and call. All maps are bounded;
 * drops are counted. They are allocated in advance: kernels 5.7 to 6.0 warn, and with panic_on_warn go down, when a
 * program on such a tracepoint has a map that allocates as it goes.
 */
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Buckets as in requests.bpf.c and src/model/latency.rs. */
#define SUB_BITS 4
#define MIN_EXP 8
#define SLOTS 448
#include "buckets.h"

/* src/model/syncs/mod.rs has the same order. */
enum { FSYNC, FDATASYNC, SYNC_FILE_RANGE, MSYNC, SYNCFS, SYNC };

/* Drops (a process and file, a slow sync, a sync in flight), and syncs by io_uring. */
enum { LOST_FILE, LOST_SLOW, LOST_FLYING, URING, TALLIES };

#define PARTS 6
#include "path.h"
#include "descriptor.h"

struct key {
	u64 ino;
	u32 dev; /* major << 20 | minor, of the file system */
	u32 pid;
	u32 call;
	u32 pad;
};
struct counts {
	u64 calls;
	u64 errors;
	u64 total;
	u64 worst; /* of two that end at the same moment the longer one may be missed */
	u64 last;
	u8 comm[16];
	struct path_tail path;
	u32 slots[SLOTS];
};
struct begun {
	u64 ns;
	struct key key;
};
struct slow_key {
	u64 ns;
	u64 id;
};
struct slow {
	u64 took;
	struct key key;
	u8 comm[16];
	long ret;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct super_block {
	u32 s_dev;
};
struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
};
struct task_struct {
	struct task_struct *group_leader;
	char comm[16];
};
struct trace_event_raw_io_uring_submit_req {
	u8 opcode;
};
struct trace_event_raw_io_uring_submit_sqe {
	u8 opcode;
};
#pragma clang attribute pop

/* Context of a system call tracepoint, the same in every kernel. */
struct entered {
	u64 common;
	long nr;
	unsigned long args[6];
};
struct left {
	u64 common;
	long nr;
	long ret;
};


struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, 2048);
	MAP_TYPE(key, struct key);
	MAP_TYPE(value, struct counts);
} files SEC(".maps");

/* Syncs in flight, by thread. */
struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, 4096);
	MAP_TYPE(key, u64);
	MAP_TYPE(value, struct begun);
} flying SEC(".maps");

/* Slow syncs, until user space removes them. */
struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, 512);
	MAP_TYPE(key, struct slow_key);
	MAP_TYPE(value, struct slow);
} slow SEC(".maps");

/* Duration from which a sync is slow, ns. */
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} threshold SEC(".maps");

struct {
	MAP_UINT(type, MAP_PERCPU_ARRAY);
	MAP_UINT(max_entries, TALLIES);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} tallies SEC(".maps");

/* Space to build a new entry: the stack is too small. */
struct {
	MAP_UINT(type, MAP_PERCPU_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct counts);
} draft SEC(".maps");

INLINE void tally(u32 which)
{
	u64 *n = map_lookup(&tallies, &which);

	if (n)
		(*n)++;
}

/* Creates an entry with its names. A function of its own, shared by all calls. */
static __attribute__((noinline)) int make(struct key *key, struct file *file)
{
	struct task_struct *task = current_task(), *leader = 0;
	struct dentry *at = 0;
	u32 zero = 0;
	struct counts *c = map_lookup(&draft, &zero);

	if (!c)
		return 0;
	/* Only names are ever written to it. */
	GET(leader, task->group_leader);
	read_kernel(c->comm, sizeof(c->comm), &leader->comm);
	if (file)
		GET(at, file->f_path.dentry);
	read_tail(&c->path, at);
	if (map_update(&files, key, c, 1 /* only if nobody else was quicker */) && !map_lookup(&files, key))
		tally(LOST_FILE);
	return 0;
}

static __attribute__((noinline)) int begin(u32 call, bool has_file, u32 fd)
{
	u64 id = current_ids();
	struct begun b = {};
	struct file *file = 0;
	struct super_block *sb = 0;
	struct inode *inode = 0;
	unsigned long ino = 0;

	b.key.pid = id >> 32;
	b.key.call = call;
	if (has_file)
		file = file_of(current_task(), fd);
	if (file) {
		GET(inode, file->f_inode);
		GET(sb, inode->i_sb);
		GET(b.key.dev, sb->s_dev);
		/* syncfs is for a whole file system. */
		if (call != SYNCFS) {
			GET(ino, inode->i_ino);
			b.key.ino = ino;
		}
	}
	if (!map_lookup(&files, &b.key))
		make(&b.key, call == SYNCFS ? 0 : file);
	b.ns = ktime_ns();
	if (map_update(&flying, &id, &b, 0))
		tally(LOST_FLYING);
	return 0;
}

static __attribute__((noinline)) int end(long ret)
{
	u64 id = current_ids(), now = ktime_ns(), took, *least;
	struct begun *found = map_lookup(&flying, &id), b;
	struct slow_key key;
	struct slow s = {};
	struct counts *c;
	u32 zero = 0;

	if (!found)
		return 0;
	b = *found;
	map_delete(&flying, &id);
	took = now - b.ns;
	c = map_lookup(&files, &b.key);
	if (c) {
		u64 at = bucket(took, exponent(took), MIN_EXP, SUB_BITS, SLOTS);

		__sync_fetch_and_add(&c->calls, 1);
		__sync_fetch_and_add(&c->total, took);
		if (ret < 0)
			__sync_fetch_and_add(&c->errors, 1);
		if (took > c->worst)
			c->worst = took;
		c->last = now;
		OPAQUE(at);
		if (at < SLOTS)
			__sync_fetch_and_add(&c->slots[at], 1);
	}
	least = map_lookup(&threshold, &zero);
	if (!least || took < *least)
		return 0;
	key.ns = b.ns;
	key.id = id;
	s.took = took;
	s.key = b.key;
	s.ret = ret;
	get_comm(s.comm, sizeof(s.comm));
	if (map_update(&slow, &key, &s, 0))
		tally(LOST_SLOW);
	return 0;
}

/* The programs of calls without arguments must not read any. */
#define CALL(name, which, has_file, fd, wanted)                                                                        \
	SEC("tracepoint/syscalls/sys_enter_" #name) int enter_##name(struct entered *ctx)                              \
	{                                                                                                              \
		return wanted ? begin(which, has_file, fd) : 0;                                                        \
	}                                                                                                              \
	SEC("tracepoint/syscalls/sys_exit_" #name) int exit_##name(struct left *ctx)                                   \
	{                                                                                                              \
		return end(ctx->ret);                                                                                  \
	}

CALL(fsync, FSYNC, 1, ctx->args[0], 1)
CALL(fdatasync, FDATASYNC, 1, ctx->args[0], 1)
CALL(sync_file_range, SYNC_FILE_RANGE, 1, ctx->args[0], 1)
/* Without MS_SYNC nothing is waited for. Its file is unknown: finding it would need the mapping. */
CALL(msync, MSYNC, 0, 0, ctx->args[2] & 4)
CALL(syncfs, SYNCFS, 1, ctx->args[0], 1)
CALL(sync, SYNC, 0, 0, 1)

INLINE int submitted(u8 opcode)
{
	/* IORING_OP_FSYNC, IORING_OP_SYNC_FILE_RANGE */
	if (opcode == 3 || opcode == 8)
		tally(URING);
	return 0;
}

SEC("tracepoint/io_uring/io_uring_submit_req")
int uring_req(struct trace_event_raw_io_uring_submit_req *ctx)
{
	return submitted(ctx->opcode);
}

/* Name before 6.0. */
SEC("tracepoint/io_uring/io_uring_submit_sqe")
int uring_sqe(struct trace_event_raw_io_uring_submit_sqe *ctx)
{
	return submitted(ctx->opcode);
}
