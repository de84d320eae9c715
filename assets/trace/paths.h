/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * A table of the paths of files, of at most ten parts each.
 */
#pragma once
#include "drops.h"
#define PARTS 10
#include "path.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct inode___path {
	struct hlist_head i_dentry;
	u32 i_generation;
};
#pragma clang attribute pop

struct file_key {
	u64 ino;
	u32 fs;
	u32 generation;
};
struct {
	MAP_UINT(type, MAP_HASH);
	MAP_UINT(max_entries, 4096);
	MAP_TYPE(key, struct file_key);
	MAP_TYPE(value, struct path_tail);
} paths SEC(".maps");

/* Space to build a path: the stack is too small. */
struct {
	MAP_UINT(type, MAP_PERCPU_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct path_tail);
} draft SEC(".maps");

/* Returns a directory entry of an inode. Null if the file was deleted, or its entry was evicted. */
INLINE struct dentry *entry_of(u64 inode)
{
	struct hlist_node *alias = 0;

	if (HAS(struct dentry, d_u.d_alias))
		GET(alias, ((struct inode___path *)inode)->i_dentry.first);
	return alias ? (void *)alias - OFFSET(struct dentry, d_u.d_alias) : 0;
}

/* Stores the path of a file; without an entry it stays unknown. */
INLINE void store_path(struct file_key *key, struct dentry *entry)
{
	u32 zero = 0;
	struct path_tail *tail = map_lookup(&draft, &zero);

	if (!tail)
		return;
	read_tail(tail, entry);
	if (map_update(&paths, key, tail, 1 /* unless another CPU was first */) && !map_lookup(&paths, key))
		count_drop();
}
