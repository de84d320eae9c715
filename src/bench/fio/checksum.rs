//! The checksums of `verify`: CRC-32C (RFC 3720, B.4) and SHA-256 (FIPS 180-4).

const CRC_TABLES: [[u32; 256]; 8] = crc_tables();

const fn crc_tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut n = 0;
    while n < 256 {
        let (mut crc, mut bit) = (n as u32, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        tables[0][n] = crc;
        n += 1;
    }
    n = 0;
    while n < 256 {
        let mut table = 1;
        while table < 8 {
            let last = tables[table - 1][n];
            tables[table][n] = (last >> 8) ^ tables[0][(last & 0xff) as usize];
            table += 1;
        }
        n += 1;
    }
    tables
}

/// Eight bytes at a time.
pub(super) fn crc32c(data: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    let mut words = data.chunks_exact(8);
    for word in &mut words {
        let low = crc ^ u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        crc = 0;
        for n in 0..4 {
            crc ^= CRC_TABLES[7 - n][(low >> (n * 8) & 0xff) as usize] ^ CRC_TABLES[3 - n][usize::from(word[4 + n])];
        }
    }
    for byte in words.remainder() {
        crc = (crc >> 8) ^ CRC_TABLES[0][usize::from(crc as u8 ^ byte)];
    }
    !crc
}

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
const ROUND_CONSTANTS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
    0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
    0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2,
];

pub(super) fn sha256(data: &[u8]) -> [u8; 32] {
    let mut state: [u32; 8] =
        [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];
    let mut blocks = data.chunks_exact(64);
    for block in &mut blocks {
        sha256_block(&mut state, block);
    }
    let rest = blocks.remainder();
    let mut last = [0u8; 128];
    last[..rest.len()].copy_from_slice(rest);
    last[rest.len()] = 0x80;
    let len = if rest.len() < 56 { 64 } else { 128 };
    last[len - 8..len].copy_from_slice(&(data.len() as u64 * 8).to_be_bytes());
    last[..len].chunks_exact(64).for_each(|block| sha256_block(&mut state, block));
    let mut out = [0u8; 32];
    for (bytes, word) in out.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    out
}

fn sha256_block(state: &mut [u32; 8], block: &[u8]) {
    let mut w = [0u32; 64];
    for (word, bytes) in w.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    for n in 16..64 {
        let s0 = w[n - 15].rotate_right(7) ^ w[n - 15].rotate_right(18) ^ (w[n - 15] >> 3);
        let s1 = w[n - 2].rotate_right(17) ^ w[n - 2].rotate_right(19) ^ (w[n - 2] >> 10);
        w[n] = w[n - 16].wrapping_add(s0).wrapping_add(w[n - 7]).wrapping_add(s1);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (k, w) in ROUND_CONSTANTS.into_iter().zip(w) {
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let t1 = h.wrapping_add(s1).wrapping_add((e & f) ^ (!e & g)).wrapping_add(k).wrapping_add(w);
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let t2 = s0.wrapping_add((a & b) ^ (a & c) ^ (b & c));
        (h, g, f, e) = (g, f, e, d.wrapping_add(t1));
        (d, c, b, a) = (c, b, a, t1.wrapping_add(t2));
    }
    for (sum, word) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *sum = sum.wrapping_add(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standards() {
        assert_eq!((crc32c(b"123456789"), crc32c(&[0; 32])), (0xe306_9283, 0x8a91_36aa));
        let hex = |data: &[u8]| sha256(data).iter().map(|b| format!("{b:02x}")).collect::<String>();
        assert_eq!(hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(hex(&[b'a'; 1_000_000]), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
        assert_eq!(hex(&[b'a'; 60]).len(), 64);
    }
}
