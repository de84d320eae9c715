/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The file of a descriptor.
 */
#pragma once
#include "kernel.h"
#include "path.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct inode;
struct path {
	struct dentry *dentry;
};
struct file {
	struct path f_path;
	struct inode *f_inode;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};
struct files_struct {
	struct fdtable *fdt;
};
struct task_struct___files {
	struct files_struct *files;
};
#pragma clang attribute pop

/* Returns the file of a descriptor of a task, or null. */
INLINE struct file *file_of(struct task_struct___files *task, u32 fd)
{
	struct files_struct *all = 0;
	struct fdtable *table = 0;
	struct file **fds = 0, *file = 0;
	u32 most = 0;

	GET(all, task->files);
	if (!all)
		return 0;
	GET(table, all->fdt);
	GET(most, table->max_fds);
	if (fd >= most)
		return 0;
	GET(fds, table->fd);
	read_kernel(&file, sizeof(file), fds + fd);
	return file;
}
