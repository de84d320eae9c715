/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The end of a file's path within its file system, from the kernel's directory entries. The including file defines
 * PARTS.
 */
#pragma once
#include "kernel.h"

#define PART 64

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct hlist_node {
	struct hlist_node *next;
};
struct hlist_head {
	struct hlist_node *first;
};
struct qstr {
	const unsigned char *name;
};
struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	union {
		struct hlist_node d_alias;
	} d_u;
};
#pragma clang attribute pop

struct path_tail {
	u8 depth; /* parts of the path that there are, the file's own first */
	u8 whole; /* the last one lies in the file system's root */
	u8 pad[6];
	u8 part[PARTS][PART];
};

/* Reads the names of an entry and of those above it. */
INLINE void read_tail(struct path_tail *to, struct dentry *at)
{
	struct dentry *up = 0;
	const unsigned char *name;
	u32 depth = 0, whole = 0;

#pragma unroll
	for (u32 i = 0; i <= PARTS; i++) {
		up = 0;
		if (at)
			read_kernel(&up, sizeof(up), &at->d_parent);
		whole |= at && up == at;
		if (at && up != at && i < PARTS) {
			name = 0;
			read_kernel(&name, sizeof(name), &at->d_name.name);
			read_kernel_str(to->part[i], PART, name);
			depth = i + 1;
		}
		at = up == at ? 0 : up;
	}
	to->depth = depth;
	to->whole = whole;
}
