/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * Waits of tasks: time asleep in state D, by process, kernel stack, file, device and holder of a lock.
 *
 * A wait begins when a task goes to sleep (sched_switch) and ends when it runs again. User space tells the reason by the
 * functions of the stack. A task that sleeps interruptibly is counted only if it has submitted a request since it ran
 * last: it may wait for asynchronous I/O.
 *
 * Known beside the stack: the file of the system call, by its descriptor; the device and the file of the last request
 * that the task submitted since it ran last; and who holds the lock, or whose file system is frozen, if it waits for one.
 *
 * These programs are attached only on request. Those at sched_switch run with interrupts off.
 */
#include "block.h"
#include "drops.h"
#include "page.h"
#include "paths.h"
#include "descriptor.h"
#include "stall.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* 1 if the tracepoint has the queue as its first argument (before 5.11), and 1 if the state of the task that goes to
 * sleep is the fourth argument of sched_switch (since 5.18); the loader sets them from the kernel's BTF. */
const volatile u8 RQ_INSERT_QUEUE = 0;
const volatile u8 HAS_STATE_ARGUMENT = 0;

static long (*const get_stackid)(void *ctx, void *map, u64 flags) = (void *)27;
static struct pt_regs *(*const task_pt_regs)(void *task) = (void *)175;
enum bpf_func_id { BPF_FUNC_task_pt_regs = 175 };
#define HAS_REGS __builtin_preserve_enum_value(*(typeof(enum bpf_func_id) *)BPF_FUNC_task_pt_regs, 0)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
typedef struct {
	long long counter;
} atomic_word;
struct task_struct {
	unsigned int __state; /* since 5.14 */
	unsigned int flags;
	int pid;
	int tgid;
	struct task_struct *group_leader;
	u64 start_boottime; /* since 5.5 */
	char comm[16];
};
struct task_struct___old {
	long state;
	u64 real_start_time;
};
struct pt_regs {
	/* x86 */
	unsigned long di;
	unsigned long orig_ax;
	/* arm64 */
	u64 orig_x0;
	int syscallno;
};
struct inode___generation {
	u32 i_generation;
	u32 i_rdev;
};
struct rw_semaphore {
	atomic_word owner;
};
struct mutex {
	atomic_word owner;
};
struct percpu_rw_semaphore {
	unsigned int read_count;
};
struct sb_writers {
	unsigned short frozen;
	struct percpu_rw_semaphore rw_sem[3];
};
struct super_block___writers {
	struct sb_writers s_writers;
};
struct file___flags {
	unsigned int f_flags;
};
struct request___bio {
	struct bio___page *bio;
};
struct bio___page {
	struct bio_vec *bi_io_vec;
};
#pragma clang attribute pop

struct bpf_iter__task {
	void *meta;
	struct task_struct *task;
};

#define STACK_DEPTH 32
struct {
	MAP_UINT(type, 7 /* stack trace */);
	MAP_UINT(max_entries, 4096);
	MAP_UINT(key_size, 4);
	MAP_UINT(value_size, 8 * STACK_DEPTH);
} stacks SEC(".maps");

/* The innermost functions of interruptible sleeps: enough to tell those for asynchronous I/O. Programs that keep many requests
 * in flight sleep often, and to walk a stack takes most of the time of this program. */
#define SHORT_STACK_DEPTH 8
struct {
	MAP_UINT(type, 7 /* stack trace */);
	MAP_UINT(max_entries, 1024);
	MAP_UINT(key_size, 4);
	MAP_UINT(value_size, 8 * SHORT_STACK_DEPTH);
} short_stacks SEC(".maps");

struct key {
	u64 started; /* of the process, ns since boot */
	struct file_key file; /* of the system call; only its `fs` for a file system that is frozen */
	struct file_key sent; /* of the last request */
	u32 tgid;
	int stack;
	u32 dev; /* of the last request, or that is read or written directly; major << 20 | minor */
	u32 holder; /* process that holds the lock */
	u32 flags;
	u32 pad;
};
/* src/bpf/task_waits/tables.rs has the same: a write of a file that was opened with O_SYNC or O_DSYNC; an interruptible
 * sleep; `file.fs` is frozen; a wait for io_uring, or for AIO, by its system call and without a stack. */
enum { SYNC_WRITE = 1, INTERRUPTIBLE = 2, FROZEN = 4, OF_URING = 8, OF_AIO = 16 };
struct wait {
	struct stall stall;
	char comm[16]; /* the process's, not the thread's */
	char holder[16]; /* the thread's that holds the lock */
};
#define MAX_WAITS 4096
struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, MAX_WAITS);
	MAP_TYPE(key, struct key);
	MAP_TYPE(value, struct wait);
} waits SEC(".maps");

/* Threads that wait or may wait, a slot for one by thread ID; a second one in a slot is not followed while the first one
 * waits. */
#define THREADS 8192
struct thread {
	u64 since; /* when it went to sleep; 0 while it runs */
	u32 tid;
	u32 dev; /* of its last request, 0 if it has submitted none since it ran last */
	u64 page; /* the address of the first page of its last request */
	u64 lock; /* that it waits for; 0 without one */
	u32 holder;
	u32 frozen; /* the file system that is frozen */
	struct key key; /* of the wait */
	char comm[16];
	char holder_comm[16];
};
struct {
	MAP_UINT(type, MAP_ARRAY);
	MAP_UINT(max_entries, THREADS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct thread);
} threads SEC(".maps");

INLINE struct thread *slot_of(u32 tid)
{
	u32 at = tid & (THREADS - 1);

	return map_lookup(&threads, &at);
}

/* Returns the slot of the current thread; null if another one waits in it. */
INLINE struct thread *mine(u32 tid)
{
	struct thread *t = slot_of(tid);

	if (!t || t->tid == tid)
		return t;
	if (t->since) {
		count_drop();
		return 0;
	}
	t->tid = tid;
	t->dev = 0;
	t->page = 0;
	t->lock = 0;
	t->holder = 0;
	t->frozen = 0;
	return t;
}

INLINE int sent(struct request *rq)
{
	u32 tid = current_ids();
	struct gendisk *disk = disk_of(rq);
	struct bio___page *bio = ((struct request___bio *)rq)->bio;
	struct thread *t;

	if (!tid || !disk)
		return 0;
	t = mine(tid);
	if (!t)
		return 0;
	t->dev = number(disk);
	/* Which file's it is is read when the task goes to sleep: few requests are followed by that. */
	t->page = bio ? (u64)bio->bi_io_vec->bv_page : 0;
	return 0;
}

SEC("tp_btf/block_io_start")
int io_start(u64 *ctx)
{
	return sent((void *)ctx[0]);
}

SEC("tp_btf/block_rq_insert")
int rq_insert(u64 *ctx)
{
	return sent((void *)subject(ctx, RQ_INSERT_QUEUE));
}

/* include/trace/events/lock.h */
enum { LOCK_SPIN = 1, LOCK_READ = 2, LOCK_WRITE = 4, LOCK_RT = 8, LOCK_PERCPU = 16, LOCK_MUTEX = 32 };

/* The file system that a lock belongs to if it is the one of this freeze level, and is held; else 0. Each level takes one
 * more lock: SB_FREEZE_WRITE, SB_FREEZE_PAGEFAULT, SB_FREEZE_FS; SB_FREEZE_COMPLETE is 4. */
INLINE u32 frozen_at(u64 sb, u32 least)
{
	unsigned short level = 0;
	u32 dev = 0;

	GET(level, ((struct super_block___writers *)sb)->s_writers.frozen);
	if (level >= least && level <= 4)
		GET(dev, ((struct super_block *)sb)->s_dev);
	return dev;
}

/* Returns the file system whose freezing a task waits for at this lock; 0 if the lock is another one. */
INLINE u32 frozen_by(u64 lock)
{
	u64 first = OFFSET(struct super_block___writers, s_writers.rw_sem[0]);
	u64 size = OFFSET(struct super_block___writers, s_writers.rw_sem[1]) - first;
	u32 dev;

	if (!HAS(struct super_block___writers, s_writers.frozen))
		return 0;
	dev = frozen_at(lock - first, 1);
	if (!dev)
		dev = frozen_at(lock - first - size, 2);
	if (!dev)
		dev = frozen_at(lock - first - 2 * size, 3);
	return dev;
}

SEC("tp_btf/contention_begin")
int contention_begin(u64 *ctx)
{
	u64 lock = ctx[0];
	u32 flags = ctx[1], tid;
	struct task_struct *owner;
	long long word = 0;
	struct thread *t;

	if ((flags & (LOCK_SPIN | LOCK_RT)) || !(flags & (LOCK_READ | LOCK_WRITE | LOCK_PERCPU | LOCK_MUTEX)))
		return 0;
	tid = current_ids();
	if (!tid)
		return 0;
	t = mine(tid);
	if (!t)
		return 0;
	t->lock = lock;
	t->holder = 0;
	t->frozen = 0;
	if (flags & LOCK_PERCPU) {
		t->frozen = frozen_by(lock);
		return 0;
	}
	if (flags & LOCK_MUTEX)
		GET(word, ((struct mutex *)lock)->owner.counter);
	else
		GET(word, ((struct rw_semaphore *)lock)->owner.counter);
	/* Of readers at most one is known, and it may have ended. */
	owner = (void *)(word & ~7ULL);
	if (!owner || (!(flags & LOCK_MUTEX) && (word & 1)))
		return 0;
	GET(t->holder, owner->tgid);
	GET(t->holder_comm, owner->comm);
	return 0;
}

SEC("tp_btf/contention_end")
int contention_end(u64 *ctx)
{
	struct thread *t = slot_of(current_ids());

	if (t && t->lock && t->lock == ctx[0] && t->tid == (u32)current_ids()) {
		t->lock = 0;
		t->holder = 0;
		t->frozen = 0;
	}
	return 0;
}

#define PF_KTHREAD 0x00200000
#define NO_STACK -1

/* Whether the first argument of a system call is the descriptor of the file that it reads or syncs, or writes. */
enum call { NO_FILE, OTHER_CALL, WRITE_CALL };
INLINE enum call call_x86(u64 nr)
{
	switch (nr) {
	case 1: case 18: case 20: case 296: case 328: /* write, pwrite64, writev, pwritev, pwritev2 */
		return WRITE_CALL;
	case 0: case 17: case 19: case 295: case 327: /* read, pread64, readv, preadv, preadv2 */
	case 74: case 75: case 77: case 78: case 217: /* fsync, fdatasync, ftruncate, getdents, getdents64 */
	case 277: case 285: case 306: case 326: /* sync_file_range, fallocate, syncfs, copy_file_range */
		return OTHER_CALL;
	}
	return NO_FILE;
}

INLINE enum call call_arm64(u32 nr)
{
	switch (nr) {
	case 64: case 66: case 68: case 70: case 287: /* write, writev, pwrite64, pwritev, pwritev2 */
		return WRITE_CALL;
	case 63: case 65: case 67: case 69: case 286: /* read, readv, pread64, preadv, preadv2 */
	case 82: case 83: case 46: case 61: /* fsync, fdatasync, ftruncate, getdents64 */
	case 84: case 47: case 267: case 285: /* sync_file_range, fallocate, syncfs, copy_file_range */
		return OTHER_CALL;
	}
	return NO_FILE;
}

/* The flag of a system call in which a task waits for its asynchronous I/O: io_uring_enter, io_getevents, io_pgetevents;
 * else 0. It spares walking the stack, which takes longer than all else of a sleep. */
INLINE u32 async_call(struct task_struct *task)
{
	struct pt_regs *regs;

	/* Threads of the kernel have no registers of a program. */
	if (!HAS_REGS || task->flags & PF_KTHREAD)
		return 0;
	regs = task_pt_regs(task);
	if (!regs)
		return 0;
	if (HAS(struct pt_regs, orig_ax)) {
		u64 nr = regs->orig_ax;

		return nr == 426 ? OF_URING : nr == 208 || nr == 333 ? OF_AIO : 0;
	}
	if (HAS(struct pt_regs, syscallno)) {
		u32 nr = regs->syscallno;

		return nr == 426 ? OF_URING : nr == 4 || nr == 292 ? OF_AIO : 0;
	}
	return 0;
}

INLINE void identify(struct file_key *key, u64 inode)
{
	struct super_block *sb = 0;
	unsigned long ino = 0;

	GET(ino, ((struct inode *)inode)->i_ino);
	GET(sb, ((struct inode *)inode)->i_sb);
	GET(key->fs, sb->s_dev);
	GET(key->generation, ((struct inode___generation *)inode)->i_generation);
	key->ino = ino;
}

#define O_DSYNC 00010000
#define S_IFMT 0170000
#define S_IFBLK 0060000

/* The file of the system call that a task is in. In a page fault the registers are those of the program, and user
 * space does not use the file. */
INLINE void file_of_call(struct key *to, struct task_struct *task)
{
	struct file_key *key = &to->file;
	struct pt_regs *regs;
	struct dentry *entry = 0;
	struct file *file;
	unsigned short mode = 0;
	enum call call;
	u64 inode = 0;
	u32 fd, flags = 0;

	if (!HAS_REGS)
		return;
	regs = task_pt_regs(task);
	if (!regs)
		return;
	if (HAS(struct pt_regs, orig_ax)) {
		call = call_x86(regs->orig_ax);
		fd = regs->di;
	} else if (HAS(struct pt_regs, syscallno)) {
		call = call_arm64(regs->syscallno);
		fd = regs->orig_x0;
	} else
		return;
	if (call == NO_FILE)
		return;
	file = file_of((void *)task, fd);
	if (!file)
		return;
	GET(flags, ((struct file___flags *)file)->f_flags);
	if (call == WRITE_CALL && (flags & O_DSYNC))
		to->flags |= SYNC_WRITE;
	GET(inode, file->f_inode);
	if (!inode)
		return;
	GET(mode, ((struct inode *)inode)->i_mode);
	if ((mode & S_IFMT) == S_IFBLK && !to->dev)
		GET(to->dev, ((struct inode___generation *)inode)->i_rdev);
	identify(key, inode);
	if (map_lookup(&paths, key))
		return;
	GET(entry, file->f_path.dentry);
	store_path(key, entry);
}

INLINE void file_of_request(struct file_key *key, u64 page)
{
	u64 inode = page_inode(page);
	unsigned short mode = 0;

	if (!inode)
		return;
	GET(mode, ((struct inode *)inode)->i_mode);
	/* Metadata has the inode of the device, or one without a mode. */
	if (!mode || (mode & S_IFMT) == S_IFBLK)
		return;
	identify(key, inode);
	if (!map_lookup(&paths, key))
		store_path(key, entry_of(inode));
}

#define TASK_UNINTERRUPTIBLE 2
#define TASK_INTERRUPTIBLE 1
#define TASK_NOLOAD 0x400 /* idle kernel threads */
#define FAST_STACK_COMPARE (1 << 9)

INLINE u32 state_of(struct task_struct *task)
{
	if (HAS(struct task_struct, __state))
		return task->__state;
	return ((struct task_struct___old *)task)->state;
}

INLINE bool is_uninterruptible_state(u32 state)
{
	return (state & (TASK_UNINTERRUPTIBLE | TASK_NOLOAD)) == TASK_UNINTERRUPTIBLE;
}

/* Stores what a task that goes to sleep waits for. */
INLINE void begin(struct thread *t, struct task_struct *task, int stack, u32 flags)
{
	struct task_struct *leader = task->group_leader;

	t->key.started = HAS(struct task_struct, start_boottime) ? leader->start_boottime
								  : ((struct task_struct___old *)leader)->real_start_time;
	t->key.tgid = task->tgid;
	t->key.dev = t->dev;
	t->key.holder = t->holder;
	t->key.stack = stack;
	t->key.file.ino = 0;
	t->key.file.fs = t->frozen;
	t->key.file.generation = 0;
	t->key.sent.ino = 0;
	t->key.sent.fs = 0;
	t->key.sent.generation = 0;
	t->key.flags = flags | (t->frozen ? FROZEN : 0);
	if (!(task->flags & PF_KTHREAD) && !t->frozen)
		file_of_call(&t->key, task);
	if (t->dev && t->page)
		file_of_request(&t->key.sent, t->page);
	GET(t->comm, leader->comm);
	t->since = ktime_ns();
}

INLINE void slept(u64 *ctx, struct task_struct *task)
{
	u32 state = HAS_STATE_ARGUMENT ? ctx[3] : state_of(task), tid, flags = 0;
	bool is_uninterruptible = is_uninterruptible_state(state);
	struct thread *t;
	int stack;

	if (!is_uninterruptible && !(state & TASK_INTERRUPTIBLE))
		return;
	tid = task->pid;
	if (!tid)
		return;
	if (!is_uninterruptible) {
		t = slot_of(tid);
		if (!t || t->tid != tid || !t->dev)
			return;
		flags = INTERRUPTIBLE | async_call(task);
	} else {
		t = mine(tid);
		if (!t)
			return;
	}
	/* 3: the tracepoint and the scheduler. */
	if (is_uninterruptible)
		stack = get_stackid(ctx, &stacks, FAST_STACK_COMPARE | 3);
	else if (flags & (OF_URING | OF_AIO))
		stack = NO_STACK;
	else
		stack = get_stackid(ctx, &short_stacks, FAST_STACK_COMPARE | 3);
	begin(t, task, stack, flags);
}

INLINE void woken(struct thread *t, u64 now)
{
	struct wait fresh = {}, *w;

	w = map_lookup(&waits, &t->key);
	if (!w) {
		__builtin_memcpy(fresh.comm, t->comm, sizeof(fresh.comm));
		if (t->key.holder)
			__builtin_memcpy(fresh.holder, t->holder_comm, sizeof(fresh.holder));
		map_update(&waits, &t->key, &fresh, 1 /* unless another CPU was first */);
		w = map_lookup(&waits, &t->key);
	}
	if (!w)
		count_drop();
	else if (t->since < now)
		count(&w->stall, now - t->since);
	t->since = 0;
	t->dev = 0;
	t->page = 0;
}

SEC("tp_btf/sched_switch")
int switched(u64 *ctx)
{
	bool preempted = ctx[0];
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u32 tid = next->pid;
	struct thread *t = slot_of(tid);

	if (t && t->since && t->tid == tid)
		woken(t, ktime_ns());
	if (!preempted)
		slept(ctx, prev);
	return 0;
}

/* Tasks that sleep when tracing begins: their stacks by thread ID, and this bit in the key. */
#define EARLY (1 << 30)
#define MAX_EARLY 256
struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, MAX_EARLY);
	MAP_UINT(key_size, 4);
	MAP_UINT(value_size, 8 * STACK_DEPTH);
} early SEC(".maps");

/* Space to build a stack, which is too large for the program's own. */
struct {
	MAP_UINT(type, MAP_PERCPU_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_UINT(key_size, 4);
	MAP_UINT(value_size, 8 * STACK_DEPTH);
} early_draft SEC(".maps");

static long (*const get_task_stack)(void *task, void *to, u32 size, u64 flags) = (void *)141;

/* Run once, after sched_switch is attached. Their waits count from now on. */
SEC("iter/task")
int asleep(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	u32 zero = 0, tid;
	struct thread *t;
	long length;
	void *stack;

	if (!task || !is_uninterruptible_state(state_of(task)))
		return 0;
	tid = task->pid;
	t = mine(tid);
	stack = map_lookup(&early_draft, &zero);
	if (!t || t->since || !stack)
		return 0;
	__builtin_memset(stack, 0, 8 * STACK_DEPTH);
	length = get_task_stack(task, stack, 8 * STACK_DEPTH, 0);
	if (length <= 0 || map_update(&early, &tid, stack, 0)) {
		count_drop();
		return 0;
	}
	begin(t, task, EARLY | tid, 0);
	/* It was woken meanwhile. */
	if (!is_uninterruptible_state(state_of(task)))
		t->since = 0;
	return 0;
}
