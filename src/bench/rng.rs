//! The generator behind positions, sizes and buffer contents: xorshift64*, seeded, no allocation.
//!
//! A repeated benchmark needs the same offsets, so each plan has a seed.

/// Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled" (2016).
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    /// `stream` is the number of the worker.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        // splitmix64: neighbouring seeds must not give neighbouring sequences, and 0 is not allowed.
        let mut z = seed.wrapping_add(stream.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((z ^ (z >> 31)) | 1)
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Uniform in `0..n` (Lemire's multiply-shift; its bias is below n / 2^64). `n` = 0 gives 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Fills with random bytes: data that neither compresses nor deduplicates.
    pub(crate) fn fill_bytes(&mut self, buf: &mut [u8]) {
        let mut chunks = buf.chunks_exact_mut(8);
        for chunk in &mut chunks {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes());
        }
        let rest = self.next_u64().to_le_bytes();
        for (byte, random) in chunks.into_remainder().iter_mut().zip(rest) {
            *byte = random;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_depend_on_seed_and_stream() {
        let take = |seed, stream| {
            let mut r = Rng::new(seed, stream);
            (0..8).map(|_| r.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(take(1, 0), take(1, 0));
        assert_ne!(take(1, 0), take(1, 1));
        assert_ne!(take(0, 0), take(1, 0));
    }

    #[test]
    fn values_are_uniform() {
        let mut r = Rng::new(42, 0);
        let mut tenths = [0u32; 10];
        for _ in 0..100_000 {
            tenths[r.below(10) as usize] += 1;
        }
        assert!(tenths.iter().all(|n| n.abs_diff(10_000) < 500), "{tenths:?}");
    }

    #[test]
    fn fill_bytes_writes_the_last_byte() {
        let mut buf = [0u8; 19];
        Rng::new(7, 0).fill_bytes(&mut buf);
        assert!(buf[16..].iter().any(|b| *b != 0));
    }
}
