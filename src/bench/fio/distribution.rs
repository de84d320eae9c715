//! Random block numbers: uniform, zipf, pareto, normal, zoned, and a permutation for `random_generator=lfsr`.
//!
//! The formulas are fio's (lib/zipf.c, lib/gauss.c, io_u.c).

use super::job::Distribution;
use crate::bench::rng::Rng;

/// fio sums the zeta series up to this many terms.
const MAX_ZETA_TERMS: u64 = 10_000_000;
const GAUSS_DRAWS: u64 = 12;

/// Block numbers of one file and direction.
#[derive(Debug, Clone)]
pub(super) enum BlockPicker {
    Uniform,
    Zipf {
        theta: f64,
        zetan: f64,
        shift: u64,
        hashed: bool,
    },
    Pareto {
        power: f64,
        shift: u64,
        hashed: bool,
    },
    Normal {
        deviation: u64,
        shift: u64,
        hashed: bool,
    },
    /// Percent of the accesses so far, first and last block.
    Zones(Vec<(u8, u64, u64)>),
}

impl BlockPicker {
    /// For `blocks` blocks of `block` bytes in `direction`.
    pub(super) fn new(distribution: &Distribution, direction: usize, blocks: u64, block: u64, rng: &mut Rng) -> Self {
        let ratio = |millionths: u64| millionths as f64 / 1e6;
        let from_centre = |centre: Option<u64>| match centre {
            Some(c) => ((blocks as f64 * ratio(c)) as u64, false),
            None => (rng.clone().below(blocks.max(1)), true),
        };
        match distribution {
            Distribution::Uniform => Self::Uniform,
            Distribution::Zipf(theta, centre) => {
                let theta = ratio(*theta);
                let zetan = (1..=blocks.min(MAX_ZETA_TERMS)).map(|n| (1.0 / n as f64).powf(theta)).sum();
                let (shift, hashed) = from_centre(*centre);
                Self::Zipf { theta, zetan, shift, hashed }
            }
            Distribution::Pareto(power, centre) => {
                let h = ratio(*power);
                let (shift, hashed) = from_centre(*centre);
                Self::Pareto { power: h.ln() / (1.0 - h).ln(), shift, hashed }
            }
            Distribution::Normal(deviation, centre) => {
                let wanted = (blocks as f64 * ratio(*deviation) / 100.0).ceil() as u64;
                // The bell is in the middle of the file already.
                let shift = centre.map_or(0.0, |c| (ratio(c) - 0.5) * blocks as f64);
                let shift = (shift.round() as i64).rem_euclid(blocks.max(1) as i64) as u64;
                Self::Normal { deviation: wanted.min(blocks / 2), shift, hashed: centre.is_none() }
            }
            Distribution::Zoned(zones) => {
                Self::zones(zones[direction].iter().map(|(share, size)| (*share, *size)), |to| {
                    (u128::from(blocks) * u128::from(to.min(100)) / 100) as u64
                })
            }
            Distribution::ZonedBytes(zones) => {
                Self::zones(zones[direction].iter().map(|(share, size)| (*share, *size)), |to| (to / block).min(blocks))
            }
        }
    }

    fn zones<T: Into<u64>>(zones: impl Iterator<Item = (u8, T)>, blocks_up_to: impl Fn(u64) -> u64) -> Self {
        let (mut accesses, mut end) = (0u8, 0u64);
        let mut all = Vec::new();
        for (share, size) in zones {
            let first = blocks_up_to(end);
            end = end.saturating_add(size.into());
            accesses += share;
            all.push((accesses, first, blocks_up_to(end).max(first + 1)));
        }
        Self::Zones(all)
    }

    /// A block below `blocks`.
    pub(super) fn pick(&self, rng: &mut Rng, blocks: u64) -> u64 {
        let unit = |rng: &mut Rng| (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        match self {
            Self::Uniform => rng.below(blocks),
            Self::Zipf { theta, zetan, shift, hashed } => {
                let n = blocks as f64;
                let zeta2 = 1.0 + 0.5f64.powf(*theta);
                let eta = (1.0 - (2.0 / n).powf(1.0 - theta)) / (1.0 - zeta2 / zetan);
                let u = unit(rng);
                let z = u * zetan;
                let rank = if z < 1.0 {
                    1
                } else if z < zeta2 {
                    2
                } else {
                    1 + (n * (eta * u - eta + 1.0).powf(1.0 / (1.0 - theta))) as u64
                };
                place(rank - 1, *shift, *hashed, blocks)
            }
            Self::Pareto { power, shift, hashed } => {
                place(((blocks - 1) as f64 * unit(rng).powf(*power)) as u64, *shift, *hashed, blocks)
            }
            Self::Normal { deviation, shift, hashed } => {
                let sum: u64 = (0..GAUSS_DRAWS).map(|_| rng.below(blocks + 1)).sum();
                let mut block = sum.div_ceil(GAUSS_DRAWS) as i64;
                if *deviation > 0 {
                    let mut off = rng.below(*deviation) as i64 - (*deviation / 2) as i64;
                    while !(0..blocks as i64).contains(&(block + off)) && off != 0 {
                        off /= 2;
                    }
                    block += off;
                }
                place(block as u64, *shift, *hashed, blocks)
            }
            Self::Zones(zones) => {
                let draw = rng.below(100) as u8 + 1;
                let zone = zones.iter().find(|(share, ..)| draw <= *share).or(zones.last());
                let (first, end) = zone.map_or((0, blocks), |(_, first, end)| (*first, *end));
                (first + rng.below(end - first)).min(blocks - 1)
            }
        }
    }
}

/// Spreads neighbouring ranks over the file, unless a centre was given.
fn place(rank: u64, shift: u64, hashed: bool, blocks: u64) -> u64 {
    let at = if hashed { mix(rank) } else { rank };
    ((u128::from(at) + u128::from(shift)) % u128::from(blocks)) as u64
}

/// fio's hash (hash.h): below a power of two no two ranks meet in one place.
fn mix(n: u64) -> u64 {
    n.wrapping_mul(0x61c8_8646_80b5_83eb)
}

/// Each number below `len` once, in a random order, without memory for it.
#[derive(Debug)]
pub(super) struct Permutation {
    len: u64,
    bits: u32,
    key: u64,
    next: u64,
}

impl Permutation {
    pub(super) fn new(len: u64, key: u64) -> Self {
        let bits = (64 - len.saturating_sub(1).leading_zeros()).max(2);
        Self { len, bits, key, next: 0 }
    }

    pub(super) fn restart(&mut self) {
        self.next = 0;
    }

    /// `None` when all were given.
    pub(super) fn next(&mut self) -> Option<u64> {
        let mask = u64::MAX >> (64 - self.bits);
        while self.next <= mask {
            let n = self.permute(self.next, mask);
            self.next += 1;
            if n < self.len {
                return Some(n);
            }
        }
        None
    }

    /// Steps that can each be undone below a power of two.
    fn permute(&self, n: u64, mask: u64) -> u64 {
        let half = self.bits / 2;
        let mut x = (n ^ self.key) & mask;
        for round in 0..3 {
            x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15 | 1).wrapping_add(self.key >> (round * 8)) & mask;
            x ^= x >> half.max(1);
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_gives_every_number_once() {
        for len in [1, 2, 3, 64, 1000, 4097] {
            let mut order = Permutation::new(len, 0x1234_5678_9abc_def1);
            let mut all: Vec<u64> = std::iter::from_fn(|| order.next()).collect();
            assert!(
                len < 64 || all.windows(2).filter(|w| w[1] == w[0] + 1).count() < len as usize / 8,
                "{len}: in order"
            );
            all.sort_unstable();
            assert_eq!(all, (0..len).collect::<Vec<_>>());
        }
    }

    /// Share of `draws` among the most frequent `part` of the blocks.
    fn top_share(distribution: &Distribution, part: f64) -> f64 {
        let (blocks, draws) = (10_000u64, 200_000u64);
        let mut rng = Rng::new(1, 1);
        let picker = BlockPicker::new(distribution, 0, blocks, 4096, &mut rng);
        let mut counts = vec![0u32; blocks as usize];
        (0..draws).for_each(|_| counts[picker.pick(&mut rng, blocks) as usize] += 1);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let top: u32 = counts.iter().take((blocks as f64 * part) as usize).sum();
        f64::from(top) / draws as f64
    }

    #[test]
    fn skewed_distributions_are_skewed_as_in_fio() {
        assert!((top_share(&Distribution::Uniform, 0.2) - 0.26).abs() < 0.02);
        // The first 20 % of 10,000 ranks have 94 % of the weights 1/rank^1.1.
        let zipf = top_share(&Distribution::Zipf(1_100_000, None), 0.2);
        assert!((zipf - 0.90).abs() < 0.06, "{zipf}");
        // h = 0.2: 80 % of the accesses to 20 % of the file.
        let pareto = top_share(&Distribution::Pareto(200_000, Some(0)), 0.2);
        assert!((pareto - 0.80).abs() < 0.04, "{pareto}");
        let normal = top_share(&Distribution::Normal(10_000_000, Some(500_000)), 0.2);
        assert!(normal > 0.6, "{normal}");
    }

    #[test]
    fn zones_get_their_shares() {
        let zones = vec![(50, 5), (30, 15), (20, 80)];
        let mut rng = Rng::new(1, 1);
        let zoned = Distribution::Zoned([zones.clone(), zones.clone(), zones]);
        let picker = BlockPicker::new(&zoned, 1, 1000, 4096, &mut rng);
        let mut counts = [0u32; 3];
        for _ in 0..100_000 {
            let block = picker.pick(&mut rng, 1000);
            counts[usize::from(block >= 50) + usize::from(block >= 200)] += 1;
        }
        for (count, share) in counts.into_iter().zip([50_000u32, 30_000, 20_000]) {
            assert!(count.abs_diff(share) < 1000, "{counts:?}");
        }
    }
}
