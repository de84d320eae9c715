//! The font of PNG images: Spleen 12x24 by Frederic Cambus (BSD 2-clause, assets/spleen/LICENSE), without the glyphs
//! that [`shape`](super::shape) draws.
//!
//! The test below packs it from the font's BDF file: the number of glyphs, their code points in ascending order, all as
//! 16-bit little-endian; then 36 bytes each, 24 rows of 12 bits. The X is our own: Spleen's looks like an H, and file
//! systems are called ext4 and XFS.

use super::shape::CELL;

static PACKED_FONT: &[u8] = include_bytes!("../../../assets/spleen/spleen-12x24.packed");

const GLYPH_BYTES: usize = CELL.0 as usize * CELL.1 as usize / 8;

#[derive(Clone, Copy)]
pub(super) struct Glyph(&'static [u8]);

impl Glyph {
    pub(super) fn is_set(self, x: u16, y: u16) -> bool {
        let bit = usize::from(y * CELL.0 + x);
        self.0.get(bit / 8).is_some_and(|byte| byte >> (7 - bit % 8) & 1 == 1)
    }
}

pub(super) fn find_glyph(c: char) -> Option<Glyph> {
    let code = u16::try_from(c as u32).ok()?;
    let (words, _) = PACKED_FONT.as_chunks::<2>();
    let count = usize::from(u16::from_le_bytes(words[0]));
    let at = words[1..=count].binary_search_by_key(&code, |bytes| u16::from_le_bytes(*bytes)).ok()?;
    let from = 2 + 2 * count + at * GLYPH_BYTES;
    PACKED_FONT.get(from..from + GLYPH_BYTES).map(Glyph)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Rows 4 to 18 of our X.
    const CUSTOM_X: [&str; 15] =
        ["606", "606", "30C", "30C", "198", "198", "0F0", "060", "0F0", "198", "198", "30C", "30C", "606", "606"];

    /// Packs a BDF file, whose rows are hexadecimal and padded to whole bytes.
    fn pack_bdf(bdf: &str) -> Vec<u8> {
        let mut glyphs: Vec<(u16, Vec<u8>)> = Vec::new();
        for text in bdf.split("STARTCHAR ").skip(1) {
            let code: u32 = text.split("ENCODING ").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
            let c = char::from_u32(code).unwrap();
            let private = (0xe000..0xf900).contains(&code);
            if private || c == ' ' || super::super::shape::symbol_shape(&c.to_string()).is_some() {
                continue;
            }
            let rows = text.split("BITMAP\n").nth(1).unwrap().lines().take(CELL.1.into());
            let ours = |y: usize| (c == 'X').then(|| CUSTOM_X.get(y.wrapping_sub(4))).flatten();
            let rows = rows.enumerate().map(|(y, row)| ours(y).copied().unwrap_or(row));
            let nibbles: Vec<u8> = rows.flat_map(|r| r[..3].chars().map(|d| d.to_digit(16).unwrap() as u8)).collect();
            let bytes: Vec<u8> = nibbles.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
            assert_eq!(bytes.len(), GLYPH_BYTES, "U+{code:04X}");
            glyphs.push((code as u16, bytes));
        }
        glyphs.sort();
        let mut out = (glyphs.len() as u16).to_le_bytes().to_vec();
        out.extend(glyphs.iter().flat_map(|g| g.0.to_le_bytes()));
        out.extend(glyphs.iter().flat_map(|g| g.1.iter().copied()));
        out
    }

    /// `SPLEEN_BDF=spleen-12x24.bdf cargo test --lib the_font_is` packs another version of the font.
    #[test]
    fn packed_font_has_all_glyphs_in_order() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/spleen/spleen-12x24.packed");
        if let Some(bdf) = std::env::var_os("SPLEEN_BDF") {
            std::fs::write(&path, pack_bdf(&std::fs::read_to_string(bdf).unwrap())).unwrap();
        }
        let packed = std::fs::read(&path).unwrap();
        let count = usize::from(u16::from_le_bytes([packed[0], packed[1]]));
        assert_eq!(packed.len(), 2 + count * (2 + GLYPH_BYTES));
        let codes: Vec<_> = packed[2..2 + 2 * count].chunks(2).map(|c| u16::from_le_bytes([c[0], c[1]])).collect();
        assert!(codes.is_sorted() && count > 400);
    }

    #[test]
    fn font_has_every_common_letter() {
        for c in ('!'..='~').chain("éäßñçØšžЖд·…‼–—’“”µ×÷±°≤≥≈√€".chars()) {
            let glyph = find_glyph(c).unwrap_or_else(|| panic!("{c}"));
            assert!((0..24).any(|y| (0..12).any(|x| glyph.is_set(x, y))), "{c}");
        }
        assert!(find_glyph('写').is_none() && find_glyph('\u{1f600}').is_none() && find_glyph('─').is_none());
    }

    #[test]
    fn glyph_pixels_match_the_font() {
        let picture = |c: char, y: u16| -> String {
            (0..12).map(|x| if find_glyph(c).unwrap().is_set(x, y) { '#' } else { '.' }).collect()
        };
        assert_eq!((picture('X', 4), picture('X', 11)), (".##......##.".into(), ".....##.....".into()));
        assert_eq!((picture('V', 4), picture('V', 18)), (".##......##.".into(), ".....##.....".into()));
        assert!(!find_glyph('V').unwrap().is_set(12, 24));
    }
}
