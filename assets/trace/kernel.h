/* SPDX-License-Identifier: MIT
 * The kernel types that are used, and the part of libbpf's headers that is needed.
 *
 * Only names matter: every access to these structs is relocated against the running kernel's BTF when the
 * object is loaded, so offsets, sizes and omitted members do not matter. What had another name in older
 * kernels is in a flavour of the struct (`struct x___old`). No header of the kernel or of libbpf is needed to
 * compile.
 */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef _Bool bool;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

/* Maps, as described by their BTF. */
#define MAP_UINT(name, val) int(*name)[val]
#define MAP_TYPE(name, val) typeof(val) *name
enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_PROGRAMS = 3, MAP_PERCPU_HASH = 5, MAP_PERCPU_ARRAY = 6 };
enum { MAP_NO_PREALLOC = 1 };

/* Helper functions by number (include/uapi/linux/bpf.h). */
static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const map_delete)(void *map, const void *key) = (void *)3;
static u64 (*const ktime_ns)(void) = (void *)5;
static long (*const tail_call)(void *ctx, void *programs, u32 index) = (void *)12; /* returns only if there is none */
static u64 (*const current_ids)(void) = (void *)14; /* process in the upper half, thread in the lower */
static long (*const get_comm)(void *to, u32 size) = (void *)16;
static void *(*const current_task)(void) = (void *)35;
static long (*const read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*const read_kernel_str)(void *to, u32 size, const void *from) = (void *)115;

/* Reads a member through a pointer. */
#define GET(to, from) read_kernel(&(to), sizeof(to), &(from))

/* Where a member lies in its type. */
#define OFFSET(type, member) __builtin_preserve_field_info(((type *)0)->member, 0)

/* Whether the running kernel has a member; decided once, when the object is loaded. */
#define HAS(type, member) __builtin_preserve_field_info(((type *)0)->member, 2)

/* Keeps the compiler from moving a range check away from the use of the number, where the verifier needs it. */
#define OPAQUE(x) asm volatile("" : "+r"(x))

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct block_device_operations {
	void *submit_bio; /* since 5.9; not there for devices that work in requests */
};
struct gendisk {
	int major;
	int first_minor;
	const struct block_device_operations *fops;
};
struct request_queue {
	struct gendisk *disk; /* since 5.15 */
};
struct block_device {
	struct gendisk *bd_disk;
};
struct bvec_iter {
	u64 bi_sector;
	unsigned int bi_size;
};
struct bio {
	struct block_device *bi_bdev; /* since 5.12 */
	unsigned int bi_opf;
	struct bvec_iter bi_iter;
};
struct bio___old {
	struct gendisk *bi_disk;
};
struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int rq_flags;
	void *mq_hctx; /* the hardware queue */
	unsigned int __data_len;
	u64 __sector;
	u64 start_time_ns;
};
struct request___old {
	struct gendisk *rq_disk; /* before 5.17 */
};
#pragma clang attribute pop
