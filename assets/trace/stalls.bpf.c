/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Tasks stalled by memory, and for how long: writers throttled because too many pages are dirty, and tasks in direct
 * reclaim (of the machine or of a memory cgroup).
 *
 * Both are rare paths on which the task sleeps or scans pages anyway, so the cost here does not matter. Memory may be
 * short at that time, so everything is preallocated.
 */
#include "drops.h"
#include "dirty_flag.h"
#include "stall.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* 1 if balance_dirty_pages has twelve arguments, 0 if it has eight; the loader sets it from the kernel's BTF. The
 * pause is the last but one argument in both. */
const volatile u8 PAUSE_ELEVENTH = 0;

enum { THROTTLE, RECLAIM, KINDS };
enum { MAP_NOEXIST = 1 };


#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct task_struct {
	struct task_struct *group_leader;
	u64 start_boottime; /* since 5.5 */
	char comm[16];
};
struct task_struct___old {
	u64 real_start_time;
};
struct backing_dev_info {
	char dev_name[64]; /* since 5.7 */
};
struct bdi_writeback {
	struct backing_dev_info *bdi;
};
#pragma clang attribute pop

/* A process, with its start time because process IDs are reused. */
struct key {
	u64 started; /* ns since boot */
	u32 tgid;
	u32 zero;
};
/* Times are jiffies for THROTTLE, as the kernel plans the pause, and ns for RECLAIM. */
struct held {
	char comm[16]; /* the process's, not the thread's */
	char bdi[16];  /* for which device it was throttled last: "8:0" */
	struct stall kinds[KINDS];
};

struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, 2048);
	MAP_TYPE(key, struct key);
	MAP_TYPE(value, struct held);
} held SEC(".maps");

/* Start of direct reclaim, by thread. */
struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, 8192);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} begun SEC(".maps");

INLINE void lose(void)
{
	count_drop();
	mark_dirty();
}

/* Returns the entry of the current process. */
INLINE struct held *mine(void)
{
	struct task_struct *task = (void *)current_task(), *leader = 0;
	struct key key = { .tgid = current_ids() >> 32 };
	struct held fresh = {}, *h;

	if (read_kernel(&leader, sizeof(leader), &task->group_leader) || !leader)
		return 0;
	if (HAS(struct task_struct, start_boottime))
		read_kernel(&key.started, sizeof(key.started), &leader->start_boottime);
	else
		read_kernel(&key.started, sizeof(key.started), &((struct task_struct___old *)leader)->real_start_time);
	h = map_lookup(&held, &key);
	if (h)
		return h;
	read_kernel(fresh.comm, sizeof(fresh.comm), &leader->comm);
	map_update(&held, &key, &fresh, MAP_NOEXIST);
	h = map_lookup(&held, &key);
	if (!h)
		lose();
	return h;
}

/* Only completed stalls are counted, so the flag is set at the end. */
INLINE void add(struct stall *s, u64 time)
{
	count(s, time);
	mark_dirty();
}

SEC("tp_btf/balance_dirty_pages")
int throttled(u64 *ctx)
{
	struct bdi_writeback *wb = (void *)ctx[0];
	struct held *h;
	long long pause;

	if (PAUSE_ELEVENTH) { pause = ctx[10]; OPAQUE(pause); } else { pause = ctx[6]; OPAQUE(pause); }
	/* Also called when the writer may continue at once. */
	if (pause <= 0)
		return 0;
	h = mine();
	if (!h)
		return 0;
	if (HAS(struct backing_dev_info, dev_name))
		read_kernel(h->bdi, sizeof(h->bdi) - 1, &wb->bdi->dev_name);
	add(&h->kinds[THROTTLE], pause);
	return 0;
}

INLINE int begin(void)
{
	u32 tid = current_ids();
	u64 now = ktime_ns();

	if (map_update(&begun, &tid, &now, 0))
		lose();
	return 0;
}

INLINE int end(void)
{
	u32 tid = current_ids();
	u64 *since = map_lookup(&begun, &tid), now = ktime_ns(), then;
	struct held *h;

	/* It started before the program was loaded. */
	if (!since)
		return 0;
	then = *since;
	map_delete(&begun, &tid);
	h = mine();
	if (h && then < now)
		add(&h->kinds[RECLAIM], now - then);
	return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int direct_begin(u64 *ctx) { return begin(); }

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int direct_end(u64 *ctx) { return end(); }

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int group_begin(u64 *ctx) { return begin(); }

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int group_end(u64 *ctx) { return end(); }
