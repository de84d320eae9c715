/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * One record per task: the contents of /proc/PID files that change from scan to scan.
 *
 * Two iterators: `processes` reports each process as its files do, including its exited threads, and
 * the counters of its other threads, to be added, with their states; `threads` reports each thread by itself. The values
 * come from the same kernel fields that fs/proc reads. No lock is taken and no page is touched, so no task can block
 * this.
 */
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

static long (*const seq_write)(void *seq, const void *data, u32 len) = (void *)127;

#define PF_WQ_WORKER 0x00000020
#define PF_KTHREAD 0x00200000

enum { FILE_PAGES, ANON_PAGES, SWAP_ENTRIES, SHMEM_PAGES };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
};
struct task_io_accounting {
	u64 read_bytes;
	u64 write_bytes;
	u64 cancelled_write_bytes;
};
struct taskstats {
	u64 cpu_count;
	u64 blkio_delay_total;
	u64 swapin_delay_total;
};
struct signal_struct {
	int nr_threads;
	u64 utime;
	u64 stime;
	u64 sum_sched_runtime;
	unsigned long maj_flt;
	struct task_io_accounting ioac;
	struct taskstats *stats;
};
struct task_delay_info {
	u64 blkio_delay;
	u64 swapin_delay;
};
struct percpu_counter {
	long long count;
};
struct mm_struct {
	unsigned long start_stack;
	struct percpu_counter rss_stat[4]; /* since 6.2 */
};
typedef struct {
	long long counter;
} atomic64;
struct mm_rss_stat {
	atomic64 count[4];
};
struct mm_struct___old {
	struct mm_rss_stat rss_stat;
};
typedef struct {
	u32 val;
} kuid;
struct cred {
	kuid uid;
};
struct io_context {
	unsigned short ioprio;
};
struct kernfs_node {
	u64 id;
};
struct cgroup {
	struct kernfs_node *kn;
};
struct css_set {
	struct cgroup *dfl_cgrp;
};
struct sched_entity {
	u64 sum_exec_runtime;
};
struct sched_info {
	unsigned long pcount;
};
struct kthread {
	void *data;
	char *full_name; /* since 5.17 */
};
struct worker {
	void *current_work;
	char desc[32];
};
struct task_struct {
	unsigned int __state; /* since 5.14 */
	int exit_state;
	unsigned int flags;
	unsigned int policy;
	int static_prio;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	u64 start_boottime;
	u64 utime;
	u64 stime;
	unsigned long maj_flt;
	const struct cred *real_cred;
	char comm[16];
	struct signal_struct *signal;
	struct mm_struct *mm;
	u64 self_exec_id;
	struct sched_entity se;
	struct sched_info sched_info;
	struct task_io_accounting ioac;
	struct task_delay_info *delays;
	struct io_context *io_context;
	struct css_set *cgroups;
	void *worker_private; /* since 5.17 */
	int *set_child_tid;
};
struct task_struct___old {
	long state;
};
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};
#pragma clang attribute pop

#define MARK 0x6b736174
enum { HAS_MM = 1, HAS_IO = 2, HAS_DELAYS = 4, HAS_CGROUP = 8, HAS_EXACT = 16 };

/* src/bpf/task_iter/record.rs has the same. */
struct entry {
	u32 mark;
	u32 has;
	u32 tid;
	u32 pid;
	u32 ppid;
	u32 uid;
	u32 state;
	u32 exit_state;
	u32 flags;
	u32 threads;
	u32 policy;
	u32 static_prio;
	u32 ioprio;
	u32 exec;
	u64 start_ns;
	u64 majflt;
	u64 utime;
	u64 stime;
	u64 runtime;
	u64 runs;
	u64 read;
	u64 write;
	u64 cancelled;
	u64 blkio_ns;
	u64 swapin_ns;
	u64 rss_pages;
	u64 swap_pages;
	u64 cgroup;
	u64 stack;
	char comm[16];
	char work[16];
};

/* Whether the thread sleeps, and its name: with the counters all that is needed of the other threads of a process. */
INLINE void name_state(struct entry *e, struct task_struct *t)
{
	if (HAS(struct task_struct, __state))
		e->state = t->__state;
	else
		e->state = ((struct task_struct___old *)t)->state;
	e->exit_state = t->exit_state;
	__builtin_memcpy(e->comm, t->comm, sizeof(e->comm));
}

/* Counters of the thread itself. */
INLINE void count_own(struct entry *e, struct task_struct *t)
{
	e->majflt = t->maj_flt;
	e->utime = t->utime;
	e->stime = t->stime;
	e->runtime = t->se.sum_exec_runtime;
	if (HAS(struct sched_info, pcount))
		e->runs = t->sched_info.pcount;
	if (HAS(struct task_struct, ioac) && HAS(struct task_io_accounting, read_bytes)) {
		e->has |= HAS_IO;
		e->read = t->ioac.read_bytes;
		e->write = t->ioac.write_bytes;
		e->cancelled = t->ioac.cancelled_write_bytes;
	}
	if (HAS(struct task_struct, delays)) {
		struct task_delay_info *d = t->delays;

		e->has |= HAS_DELAYS;
		if (d) {
			e->blkio_ns = d->blkio_delay;
			e->swapin_ns = d->swapin_delay;
		}
	}
}

/* Counters of exited threads. */
INLINE void count_ended(struct entry *e, struct signal_struct *s)
{
	e->majflt += s->maj_flt;
	e->utime += s->utime;
	e->stime += s->stime;
	e->runtime += s->sum_sched_runtime;
	if (HAS(struct task_struct, ioac) && HAS(struct task_io_accounting, read_bytes)) {
		e->read += s->ioac.read_bytes;
		e->write += s->ioac.write_bytes;
		e->cancelled += s->ioac.cancelled_write_bytes;
	}
	if (HAS(struct signal_struct, stats)) {
		struct taskstats *ended = s->stats;

		if (ended) {
			e->runs += ended->cpu_count;
			e->blkio_ns += ended->blkio_delay_total;
			e->swapin_ns += ended->swapin_delay_total;
		}
	}
}

/* A per-CPU counter may be negative for a moment. */
INLINE u64 positive(long long n)
{
	return n > 0 ? n : 0;
}

INLINE void memory(struct entry *e, struct mm_struct *mm)
{
	e->has |= HAS_MM;
	e->stack = mm->start_stack;
	if (HAS(struct percpu_counter, count) && HAS(struct mm_struct, rss_stat[0].count)) {
		e->rss_pages = positive(mm->rss_stat[FILE_PAGES].count) + positive(mm->rss_stat[ANON_PAGES].count) +
			       positive(mm->rss_stat[SHMEM_PAGES].count);
		e->swap_pages = positive(mm->rss_stat[SWAP_ENTRIES].count);
	} else {
		struct mm_rss_stat *stat = &((struct mm_struct___old *)mm)->rss_stat;

		e->has |= HAS_EXACT;
		e->rss_pages = positive(stat->count[FILE_PAGES].counter) + positive(stat->count[ANON_PAGES].counter) +
			       positive(stat->count[SHMEM_PAGES].counter);
		e->swap_pages = positive(stat->count[SWAP_ENTRIES].counter);
	}
}

/* Kernel threads may have longer names than others, and workers report what they work on. */
INLINE void kernel_name(struct entry *e, struct task_struct *t)
{
	struct kthread *k;
	struct worker *w = 0;
	void *work = 0;
	char *name = 0;

	if (HAS(struct task_struct, worker_private) && HAS(struct kthread, full_name)) {
		k = t->worker_private;
		read_kernel(&name, sizeof(name), &k->full_name);
		if (name)
			read_kernel(e->comm, sizeof(e->comm), name);
	} else {
		k = (void *)t->set_child_tid;
	}
	if (!(e->flags & PF_WQ_WORKER) || !HAS(struct kthread, data) || !HAS(struct worker, desc))
		return;
	read_kernel(&w, sizeof(w), &k->data);
	if (!w || read_kernel_str(e->work + 1, sizeof(e->work) - 1, &w->desc) <= 1)
		return;
	read_kernel(&work, sizeof(work), &w->current_work);
	e->work[0] = work ? '+' : '-';
}

INLINE void describe(struct entry *e, struct task_struct *t, struct signal_struct *s)
{
	struct task_struct *parent = t->real_parent;
	struct mm_struct *mm = t->mm;
	struct io_context *io = t->io_context;
	struct css_set *groups;
	const struct cred *cred = t->real_cred;

	e->flags = t->flags;
	e->ppid = parent ? parent->tgid : 0;
	e->uid = cred ? cred->uid.val : 0;
	e->threads = s->nr_threads;
	e->policy = t->policy;
	e->static_prio = t->static_prio;
	e->ioprio = io ? io->ioprio : 0;
	e->exec = t->self_exec_id;
	e->start_ns = t->start_boottime;
	if (HAS(struct task_struct, cgroups) && HAS(struct css_set, dfl_cgrp)) {
		groups = t->cgroups;
		if (groups) {
			e->has |= HAS_CGROUP;
			e->cgroup = groups->dfl_cgrp->kn->id;
		}
	}
	if (e->flags & PF_KTHREAD)
		kernel_name(e, t);
	else if (mm)
		memory(e, mm);
}

enum tell { THREADS, PROCESSES };

INLINE int tell(struct bpf_iter__task *ctx, enum tell what)
{
	struct task_struct *t = ctx->task;
	struct seq_file *seq = ctx->meta->seq;
	struct signal_struct *s;
	struct entry e = { .mark = MARK };

	if (!t)
		return 0;
	s = t->signal;
	/* It has exited. */
	if (!s)
		return 0;
	e.tid = t->pid;
	e.pid = t->tgid;
	name_state(&e, t);
	count_own(&e, t);
	if (what == THREADS || e.tid == e.pid)
		describe(&e, t, s);
	if (what != THREADS && e.tid == e.pid)
		count_ended(&e, s);
	seq_write(seq, &e, sizeof(e));
	return 0;
}

SEC("iter/task")
int processes(struct bpf_iter__task *ctx)
{
	return tell(ctx, PROCESSES);
}

SEC("iter/task")
int threads(struct bpf_iter__task *ctx)
{
	return tell(ctx, THREADS);
}
