//! Symbols that are drawn rather than taken from a font: frames, bars, braille dots, arrows. They fill their cells and
//! join with their neighbours in any viewer.
//!
//! Coordinates are in a cell of [`CELL`] units, which are pixels in a PNG.

/// Width and height of a cell in units.
pub(super) const CELL: (u16, u16) = (12, 24);

const WIDTH: f32 = CELL.0 as f32;
const HEIGHT: f32 = CELL.1 as f32;
/// Centre of lines, and thickness of absent, light and heavy ones.
const CENTER: (f32, f32) = (WIDTH / 2.0, HEIGHT / 2.0);
const THICKNESS: [f32; 3] = [0.0, 2.0, 4.0];

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ShapePart {
    /// Left, top, width, height.
    Rect(f32, f32, f32, f32),
    Polygon(Vec<(f32, f32)>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct SymbolShape {
    pub(super) parts: Vec<ShapePart>,
    /// 100, or less for shades.
    pub(super) opacity_pct: u16,
}

/// U+2500 to U+254B, then U+2574 to U+257F: thickness of the left, right, top and bottom arm, 0 to 2.
const BOX_ARMS: &str = "\
    1100 2200 0011 0022 ---- ---- ---- ---- ---- ---- ---- ---- 0101 0201 0102 0202 \
    1001 2001 1002 2002 0110 0210 0120 0220 1010 2010 1020 2020 0111 0211 0121 0112 \
    0122 0221 0212 0222 1011 2011 1021 1012 1022 2021 2012 2022 1101 2101 1201 2201 \
    1102 2102 1202 2202 1110 2110 1210 2210 1120 2120 1220 2220 1111 2111 1211 2211 \
    1121 1112 1122 2121 1221 2112 1212 2221 2212 2122 1222 2222 \
    1000 0010 0100 0001 2000 0020 0200 0002 1200 0012 2100 0021";

/// Quadrants of U+2596 to U+259F: upper left 8, upper right 4, lower left 2, lower right 1.
const QUADRANTS: [u8; 10] = [2, 1, 8, 11, 9, 14, 13, 4, 6, 7];

/// The shape of a symbol; `None` if the font has to show it.
pub(super) fn symbol_shape(symbol: &str) -> Option<SymbolShape> {
    let mut chars = symbol.chars();
    let (c, None) = (chars.next()?, chars.next()) else { return None };
    let code = c as u32;
    let (parts, share) = match code {
        0x2504..=0x250b => (dash_parts(code - 0x2504), 100),
        0x2500..=0x254b => (box_parts(code - 0x2500), 100),
        0x256d => (rounded_corner_parts(true, true), 100),
        0x256e => (rounded_corner_parts(false, true), 100),
        0x256f => (rounded_corner_parts(false, false), 100),
        0x2570 => (rounded_corner_parts(true, false), 100),
        0x2574..=0x257f => (box_parts(code - 0x2574 + 0x4c), 100),
        0x2580..=0x259f => block_parts(code),
        0x2800..=0x28ff => (braille_parts(code - 0x2800), 100),
        _ => (arrow_parts(c)?, 100),
    };
    Some(SymbolShape { parts, opacity_pct: share })
}

fn box_parts(nth: u32) -> Vec<ShapePart> {
    let from = nth as usize * 5;
    let arm: Vec<usize> = BOX_ARMS[from..from + 4].bytes().map(|b| usize::from(b.saturating_sub(b'0'))).collect();
    let [left, right, up, down] = [arm[0], arm[1], arm[2], arm[3]].map(|a| THICKNESS[a.min(2)]);
    // Arms extend beyond the centre by half the thickness of the crossing ones, which completes corners.
    let (across, along) = (up.max(down) / 2.0, left.max(right) / 2.0);
    let (mx, my) = CENTER;
    let mut parts = Vec::new();
    let mut add = |x: f32, y: f32, w: f32, h: f32| {
        if w > 0.0 && h > 0.0 {
            parts.push(ShapePart::Rect(x, y, w, h));
        }
    };
    // Opposite arms of equal thickness are one part.
    if left == right {
        add(0.0, my - left / 2.0, WIDTH, left);
    } else {
        add(0.0, my - left / 2.0, mx + across, left);
        add(mx - across, my - right / 2.0, WIDTH - mx + across, right);
    }
    if up == down {
        add(mx - up / 2.0, 0.0, up, HEIGHT);
    } else {
        add(mx - up / 2.0, 0.0, up, my + along);
        add(mx - down / 2.0, my - along, down, HEIGHT - my + along);
    }
    parts
}

/// A quarter of a circle from the middle of a side edge to the vertical line, and the rest of that line. `to_right` and
/// `down`: where the two arms go.
fn rounded_corner_parts(to_right: bool, down: bool) -> Vec<ShapePart> {
    const STEPS: u8 = 8;
    let (mx, my) = CENTER;
    let (half, radius) = (THICKNESS[1] / 2.0, mx);
    let (centre_x, from_x) = if to_right { (WIDTH, -1.0) } else { (0.0, 1.0) };
    let (centre_y, from_y) = if down { (my + radius, -1.0) } else { (my - radius, 1.0) };
    let point = |step: u8, radius: f32| {
        let (sin, cos) = (f32::from(step) / f32::from(STEPS) * std::f32::consts::FRAC_PI_2).sin_cos();
        (centre_x + from_x * radius * cos, centre_y + from_y * radius * sin)
    };
    let outer = (0..=STEPS).map(|step| point(step, radius + half));
    let inner = (0..=STEPS).rev().map(|step| point(step, radius - half));
    let line = if down { (centre_y, HEIGHT - centre_y) } else { (0.0, centre_y) };
    vec![ShapePart::Polygon(outer.chain(inner).collect()), ShapePart::Rect(mx - half, line.0, THICKNESS[1], line.1)]
}

/// U+2504 to U+250B: three or four dashes, horizontal or vertical, light or heavy.
fn dash_parts(nth: u32) -> Vec<ShapePart> {
    let n = if nth < 4 { 3 } else { 4 };
    let thick = THICKNESS[1 + (nth % 2) as usize];
    let down = nth % 4 >= 2;
    let step = if down { HEIGHT } else { WIDTH } / n as f32;
    // Half a gap at both ends keeps dashes evenly spaced across cells.
    let (gap, (mx, my)) = (step / 3.0, CENTER);
    (0..n)
        .map(|i| {
            let at = i as f32 * step + gap / 2.0;
            if down {
                ShapePart::Rect(mx - thick / 2.0, at, thick, step - gap)
            } else {
                ShapePart::Rect(at, my - thick / 2.0, step - gap, thick)
            }
        })
        .collect()
}

fn block_parts(code: u32) -> (Vec<ShapePart>, u16) {
    let eighth = |n: u32| n as f32 / 8.0;
    let (left, top, width, height) = match code {
        0x2580 => (0.0, 0.0, WIDTH, HEIGHT / 2.0),
        0x2581..=0x2588 => {
            let height = HEIGHT * eighth(code - 0x2580);
            (0.0, HEIGHT - height, WIDTH, height)
        }
        0x2589..=0x258f => (0.0, 0.0, WIDTH * eighth(0x2590 - code), HEIGHT),
        0x2590 => (WIDTH / 2.0, 0.0, WIDTH / 2.0, HEIGHT),
        0x2591..=0x2593 => {
            return (vec![ShapePart::Rect(0.0, 0.0, WIDTH, HEIGHT)], 25 * (code - 0x2590) as u16);
        }
        0x2594 => (0.0, 0.0, WIDTH, HEIGHT / 8.0),
        0x2595 => (WIDTH * 7.0 / 8.0, 0.0, WIDTH / 8.0, HEIGHT),
        _ => {
            let quarters = QUADRANTS[(code - 0x2596) as usize];
            let (w, h) = CENTER;
            let positions = [(8, 0.0, 0.0), (4, w, 0.0), (2, 0.0, h), (1, w, h)];
            let set = positions.into_iter().filter(|(bit, ..)| quarters & bit != 0);
            return (set.map(|(_, x, y)| ShapePart::Rect(x, y, w, h)).collect(), 100);
        }
    };
    (vec![ShapePart::Rect(left, top, width, height)], 100)
}

/// Dots 1 to 6 are the left column, then the right one; 7 and 8 are the bottom row.
fn braille_parts(bits: u32) -> Vec<ShapePart> {
    const DOT_POSITIONS: [(u8, u8); 8] = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)];
    let (w, h, dot) = (WIDTH / 2.0, HEIGHT / 4.0, 4.0);
    let set = DOT_POSITIONS.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1);
    set.map(|(_, (x, y))| {
        let (x, y) = (f32::from(*x) * w + (w - dot) / 2.0, f32::from(*y) * h + (h - dot) / 2.0);
        ShapePart::Rect(x, y, dot, dot)
    })
    .collect()
}

fn arrow_parts(c: char) -> Option<Vec<ShapePart>> {
    let poly = |corners: &[(f32, f32)]| ShapePart::Polygon(corners.to_vec());
    Some(match c {
        '←' => vec![ShapePart::Rect(4.0, 11.0, 7.0, 2.0), poly(&[(1.0, 12.0), (6.0, 7.0), (6.0, 17.0)])],
        '→' => vec![ShapePart::Rect(1.0, 11.0, 7.0, 2.0), poly(&[(11.0, 12.0), (6.0, 7.0), (6.0, 17.0)])],
        '↑' => vec![ShapePart::Rect(5.0, 8.0, 2.0, 12.0), poly(&[(6.0, 4.0), (11.0, 10.0), (1.0, 10.0)])],
        '↓' => vec![ShapePart::Rect(5.0, 4.0, 2.0, 12.0), poly(&[(6.0, 20.0), (11.0, 14.0), (1.0, 14.0)])],
        '▴' => vec![poly(&[(6.0, 8.0), (11.0, 16.0), (1.0, 16.0)])],
        '▾' => vec![poly(&[(6.0, 17.0), (11.0, 9.0), (1.0, 9.0)])],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cell as in a PNG, one character a pixel.
    fn rasterize(symbol: &str) -> Vec<String> {
        let shape = symbol_shape(symbol).unwrap();
        let mut out = vec![vec!['.'; CELL.0.into()]; CELL.1.into()];
        for part in &shape.parts {
            super::super::png::fill_part(part, |x, y| {
                out[usize::from(y)][usize::from(x)] = '#';
            });
        }
        out.into_iter().map(|row| row.into_iter().collect()).collect()
    }

    /// The pixels at an edge, which have to match the neighbour's.
    fn edge_pixels(symbol: &str, side: char) -> String {
        let all = rasterize(symbol);
        match side {
            'l' => all.iter().map(|r| r.chars().next().unwrap()).collect(),
            'r' => all.iter().map(|r| r.chars().last().unwrap()).collect(),
            't' => all[0].clone(),
            _ => all[all.len() - 1].clone(),
        }
    }

    #[test]
    fn box_drawing_joins_at_every_edge() {
        let line = edge_pixels("─", 'r');
        assert_eq!(line.matches('#').count(), 2);
        for (symbol, sides) in [("─", "lr"), ("┌", "r"), ("┐", "l"), ("└", "r"), ("┘", "l"), ("├", "r"), ("┼", "lr")]
        {
            for side in sides.chars() {
                assert_eq!(edge_pixels(symbol, side), line, "{symbol} {side}");
            }
        }
        let line = edge_pixels("│", 't');
        for (symbol, sides) in [("│", "tb"), ("┌", "b"), ("┘", "t"), ("┤", "tb"), ("┬", "b"), ("┼", "tb")] {
            for side in sides.chars() {
                assert_eq!(edge_pixels(symbol, side), line, "{symbol} {side}");
            }
        }
        assert_eq!(edge_pixels("┌", 'l').matches('#').count() + edge_pixels("┌", 't').matches('#').count(), 0);
        assert!(edge_pixels("┃", 't').matches('#').count() > line.matches('#').count());
    }

    #[test]
    fn bars_grow_by_eighths_and_the_full_block_fills_the_cell() {
        let count = |s: &str| rasterize(s).concat().matches('#').count();
        let full = usize::from(CELL.0) * usize::from(CELL.1);
        let up: Vec<_> = "▁▂▃▄▅▆▇█".chars().map(|c| count(&c.to_string())).collect();
        assert_eq!(up, (1..=8).map(|n| full * n / 8).collect::<Vec<_>>());
        let wide: Vec<_> = "▏▎▍▌▋▊▉█".chars().map(|c| count(&c.to_string())).collect();
        assert!(wide.is_sorted() && wide[0] > 0 && wide[7] == full, "{wide:?}");
        assert_eq!((count("▚"), count("▙"), count("▐")), (full / 2, full * 3 / 4, full / 2));
    }

    #[test]
    fn every_shape_is_visible_and_inside_its_cell() {
        let codes = (0x2500..=0x254b).chain(0x2574..=0x259f).chain(0x2801..=0x28ff);
        for c in codes.filter_map(char::from_u32).chain("←→↑↓▴▾".chars()) {
            let got = symbol_shape(&c.to_string()).unwrap_or_else(|| panic!("{c}"));
            assert!(!got.parts.is_empty(), "{c}");
            for part in &got.parts {
                let corners = match part {
                    ShapePart::Rect(x, y, w, h) => {
                        assert!(*w > 0.0 && *h > 0.0, "{c}");
                        vec![(*x, *y), (x + w, y + h)]
                    }
                    ShapePart::Polygon(corners) => corners.clone(),
                };
                for (x, y) in corners {
                    assert!((0.0..=WIDTH).contains(&x) && (0.0..=HEIGHT).contains(&y), "{c}: {part:?}");
                }
            }
        }
        assert!(symbol_shape("a").is_none() && symbol_shape("").is_none() && symbol_shape("─\u{301}").is_none());
    }

    #[test]
    fn braille_dots_are_placed_correctly() {
        let all = rasterize("⡁");
        assert!(all[2].starts_with(".####") && all[20].starts_with(".####"));
        assert_eq!(all.concat().matches('#').count(), 32);
    }
}
