/* SPDX-License-Identifier: GPL-2.0 OR MIT
 * The inode in whose page cache a page is.
 */
#pragma once
#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct super_block {
	u32 s_dev;
	unsigned long s_magic;
};
struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
};
struct address_space {
	struct inode *host;
};
struct page {
	unsigned long flags;
	unsigned long compound_head; /* before 7.2 */
	struct address_space *mapping;
};
struct page___info {
	unsigned long compound_info; /* since 7.2 */
};
struct folio {
	struct address_space *mapping;
};
struct bio_vec {
	struct page *bv_page;
};
#pragma clang attribute pop

/* Returns the head page of a page's folio. A tail page has the lowest bit set in a word that points to its head or, since
 * 7.2 where a `struct page` has a power of two as its size, masks its own address. Pages are numbers here, because the
 * verifier forbids to mask a pointer. */
INLINE u64 head_of(u64 page)
{
	unsigned long word = 0, above;

	if (HAS(struct page___info, compound_info))
		read_kernel(&word, sizeof(word), &((struct page___info *)page)->compound_info);
	else
		read_kernel(&word, sizeof(word), &((struct page *)page)->compound_head);
	if (!(word & 1))
		return page;
	word--;
	/* A mask is a negated power of two; no pointer to a page is. */
	above = -word;
	return above & (above - 1) ? word : page & word;
}

/* Returns the mapping of a folio by its head page, with flag bits for anonymous memory. */
INLINE unsigned long mapping_of(u64 head)
{
	unsigned long mapping = 0;

	if (HAS(struct folio, mapping))
		read_kernel(&mapping, sizeof(mapping), &((struct folio *)head)->mapping);
	else
		read_kernel(&mapping, sizeof(mapping), &((struct page *)head)->mapping);
	return mapping;
}

/* Returns the address of the inode of a mapping; 0 for memory that is no page cache. */
INLINE u64 host_of(unsigned long mapping)
{
	unsigned long inode = 0;

	/* Anonymous memory has flag bits here. */
	if (mapping && !(mapping & 3))
		read_kernel(&inode, sizeof(inode), &((struct address_space *)mapping)->host);
	return inode;
}

/* Returns the address of the inode in whose page cache a page is; 0 for other memory. */
INLINE u64 page_inode(u64 page)
{
	return host_of(mapping_of(head_of(page)));
}
