//! Which blocks of a file a pass has visited: fio's random map, with a search for the next free block.

const BITS: u64 = 64;

/// Levels of bits: one of the lowest for each block, one of the others for each full word of the level below.
#[derive(Debug)]
pub(super) struct BlockMap {
    levels: Vec<Vec<u64>>,
    blocks: u64,
}

impl BlockMap {
    pub(super) fn new(blocks: u64) -> Self {
        let mut levels = Vec::new();
        let mut bits = blocks.max(1);
        loop {
            let words = bits.div_ceil(BITS);
            levels.push(vec![0u64; words as usize]);
            if words == 1 {
                return Self { levels, blocks };
            }
            bits = words;
        }
    }

    pub(super) fn clear(&mut self) {
        self.levels.iter_mut().for_each(|level| level.fill(0));
    }

    pub(super) fn is_set(&self, block: u64) -> bool {
        self.levels[0][(block / BITS) as usize] >> (block % BITS) & 1 == 1
    }

    /// Marks up to `count` free blocks from `first` on; returns how many there were before a visited one or the end.
    pub(super) fn set(&mut self, first: u64, count: u64) -> u64 {
        let mut done = 0;
        while done < count && first + done < self.blocks && !self.is_set(first + done) {
            self.set_one(first + done);
            done += 1;
        }
        done
    }

    fn set_one(&mut self, mut bit: u64) {
        for level in &mut self.levels {
            let word = &mut level[(bit / BITS) as usize];
            *word |= 1 << (bit % BITS);
            if *word != u64::MAX {
                return;
            }
            bit /= BITS;
        }
    }

    /// The first free block from `from` on, then from the start; `None` if all are visited.
    pub(super) fn next_free(&self, from: u64) -> Option<u64> {
        self.free_from(from).or_else(|| self.free_from(0))
    }

    fn free_from(&self, from: u64) -> Option<u64> {
        let mut bit = from;
        let mut level = 0;
        // Up, until a word has a free bit at or behind this one.
        loop {
            let words = self.levels.get(level)?;
            let word = (bit / BITS) as usize;
            let free = !*words.get(word)? & (u64::MAX << (bit % BITS));
            if free != 0 {
                bit = word as u64 * BITS + u64::from(free.trailing_zeros());
                break;
            }
            bit = word as u64 + 1;
            level += 1;
        }
        // And down again.
        while level > 0 {
            level -= 1;
            let free = !*self.levels[level].get(bit as usize)?;
            bit = bit * BITS + u64::from(free.trailing_zeros());
        }
        (bit < self.blocks).then_some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn free_blocks_are_found_as_in_a_list(blocks in 1u64..9000, picks in proptest::collection::vec((0u64..9000, 1u64..400), 1..60)) {
            let (mut map, mut list) = (BlockMap::new(blocks), vec![false; blocks as usize]);
            for (at, count) in picks {
                let at = at % blocks;
                let free = (at..blocks).chain(0..blocks).find(|b| !list[*b as usize]);
                prop_assert_eq!(map.next_free(at), free);
                let Some(first) = free else { break };
                let run = (first..blocks.min(first + count)).take_while(|b| !list[*b as usize]).count() as u64;
                prop_assert_eq!(map.set(first, count), run);
                (first..first + run).for_each(|b| list[b as usize] = true);
            }
        }
    }

    #[test]
    fn every_block_comes_once() {
        let mut map = BlockMap::new(300_000);
        let mut n = 0;
        while let Some(block) = map.next_free(n * 7919 % 300_000) {
            assert_eq!(map.set(block, 1), 1);
            n += 1;
        }
        assert_eq!(n, 300_000);
        map.clear();
        assert_eq!(map.next_free(5), Some(5));
    }
}
