//! Random numbers, and changed copies of the inputs of a corpus.

/// xorshift64* (Vigna).
pub(super) struct Random(u64);

/// Longer inputs of a corpus take long, bytes.
const LONG: usize = 2_048;
/// One in so many of those that come up is used, unless all are long.
const LONG_INPUTS: usize = 16;

/// What an input of the corpus is made of, as its first bytes show.
#[derive(Clone, Copy)]
enum Form {
    Json,
    Text,
    Binary,
}

impl Form {
    fn of(input: &[u8]) -> Self {
        let is_control = |byte: &u8| *byte < b' ' && !matches!(byte, b'\t' | b'\n');
        match input.first() {
            Some(b'{') => Self::Json,
            _ if input.iter().take(64).any(is_control) => Self::Binary,
            _ => Self::Text,
        }
    }
}

impl Random {
    /// The numbers of one block of a target's inputs: other ones for every name and number.
    pub(super) fn new(name: &str, block: u64) -> Self {
        // FNV-1a, and the last steps of splitmix64 so that blocks next to each other have nothing in common.
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        let mixed = hash ^ block.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((mixed ^ (mixed >> 31)).max(1))
    }

    /// A number below `n`; 0 if `n` is 0.
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        ((number * n as u64) >> 32) as usize
    }

    fn of<'a>(&mut self, all: &'a [Vec<u8>]) -> &'a [u8] {
        &all[self.below(all.len())]
    }

    /// An input of the corpus; seldom a long one, so that more inputs are run.
    fn original<'a>(&mut self, corpus: &'a [Vec<u8>]) -> &'a [u8] {
        for _ in 0..8 {
            let input = self.of(corpus);
            if input.len() <= LONG || self.below(LONG_INPUTS) == 0 {
                return input;
            }
        }
        self.of(corpus)
    }

    /// Replaces `input` by a changed copy of an input of the corpus, of at most `longest` bytes.
    pub(super) fn next_input(&mut self, input: &mut Vec<u8>, corpus: &[Vec<u8>], longest: usize) {
        input.clear();
        let original = self.original(corpus);
        let form = Form::of(original);
        input.extend_from_slice(self.excerpt(original, form));
        let changes = if self.below(2) == 0 { 1 } else { 1 + self.below(6) };
        for _ in 0..changes {
            match form {
                Form::Json if self.below(4) > 0 => self.change_value(input, corpus),
                Form::Binary if self.below(2) > 0 => self.change_byte(input),
                _ => self.change(input, corpus),
            }
        }
        input.truncate(longest);
    }

    /// JSON and short binary records are copied whole, because they are refused if they are cut. Of the others one in four is
    /// copied whole; else a short piece is copied, half of them from the start, as a header is there, half from the start of a
    /// line. Short inputs take a fraction of the time, so that more of them are run.
    fn excerpt<'a>(&mut self, original: &'a [u8], form: Form) -> &'a [u8] {
        let is_whole = match form {
            Form::Json => true,
            Form::Binary if original.len() <= LONG => true,
            _ => self.below(4) == 0,
        };
        if is_whole {
            return original;
        }
        let start = if self.below(2) == 0 { 0 } else { self.below(original.len()) };
        let is_end = |byte: &u8| matches!(byte, b'\n' | 0);
        let start = original[..start].iter().rposition(is_end).map_or(0, |at| at + 1);
        let most = (original.len() / 2).clamp(64, LONG) >> self.below(3);
        &original[start..original.len().min(start + 1 + self.below(most))]
    }

    /// A part of an input: a word, a line or any bytes.
    fn part(&mut self, input: &[u8]) -> std::ops::Range<usize> {
        let start = self.below(input.len());
        let rest = &input[start..];
        let end = match self.below(3) {
            0 => rest.iter().position(|b| *b == b'\n'),
            1 => rest.iter().position(|b| !b.is_ascii_alphanumeric()),
            _ => None,
        };
        start..start + end.unwrap_or_else(|| self.below(rest.len().min(64) + 1))
    }

    /// A number, a name or another word around or after some byte.
    fn word(&mut self, input: &[u8]) -> std::ops::Range<usize> {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let at = self.below(input.len());
        let start = input[..at].iter().rposition(|byte| !is_part(byte)).map_or(0, |before| before + 1);
        let start = start + input[start..].iter().position(is_part).unwrap_or(0);
        start..start + input[start..].iter().position(|byte| !is_part(byte)).unwrap_or(input.len() - start)
    }

    /// Replaces a value of JSON by another one: what comes after a colon, or between quotes after it.
    fn change_value(&mut self, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let value = self.value(input);
        if self.below(2) == 0 {
            drop(input.splice(value, self.extreme()));
        } else {
            let other = self.of(corpus);
            let by = self.value(other);
            drop(input.splice(value, other[by].iter().copied()));
        }
    }

    fn value(&mut self, input: &[u8]) -> std::ops::Range<usize> {
        let at = self.below(input.len());
        let colon = input[at..].iter().position(|byte| *byte == b':').map_or(at, |colon| at + colon + 1);
        let start = colon + input[colon..].iter().take_while(|byte| matches!(byte, b'"' | b'[' | b' ')).count();
        let is_end = |byte: &u8| matches!(byte, b'"' | b',' | b']' | b'}' | b'{' | b':');
        start..start + input[start..].iter().position(is_end).unwrap_or(0)
    }

    /// Overwrites a byte, so that everything stays at its place.
    fn change_byte(&mut self, input: &mut [u8]) {
        let (at, kind) = (self.below(input.len()), self.below(4));
        let Some(byte) = input.get_mut(at) else { return };
        *byte = match kind {
            0 => 0xff,
            1 => *byte ^ 1 << self.below(8),
            2 => byte.wrapping_add(1),
            _ => self.below(256) as u8,
        };
    }

    /// Makes one change. The text keeps its form in two of the ten kinds, which replace a word by another one.
    fn change(&mut self, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        let end = at + self.below((input.len() - at).min(32) + 1);
        match self.below(10) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = self.below(256) as u8,
            2 => drop(input.drain(at..end)),
            3 => drop(input.splice(at..end, self.extreme())),
            4 => {
                let part = self.part(input);
                let len = part.len();
                input.extend_from_within(part);
                input[at..].rotate_right(len);
            }
            5 => {
                let other = self.of(corpus);
                let part = self.part(other);
                drop(input.splice(at..end, other[part].iter().copied()));
            }
            6 => input.truncate(at),
            7 => {
                let word = self.word(input);
                drop(input.splice(word, self.extreme()));
            }
            8 => {
                let (word, other) = (self.word(input), self.of(corpus));
                let by = self.word(other);
                drop(input.splice(word, other[by].iter().copied()));
            }
            _ => input.insert(at, self.below(256) as u8),
        }
    }

    /// Something at the end of a range, or not expected at all.
    fn extreme(&mut self) -> impl Iterator<Item = u8> + use<> {
        const EXTREMES: [&[u8]; 14] = [
            b"0",
            b"1",
            b"-1",
            b"18446744073709551615",
            b"9223372036854775807",
            b"-9223372036854775808",
            b"4294967296",
            b"1e308",
            b"1e999",
            b"null",
            b"\0",
            b"\xff\xff\xff\xff",
            b"\x1b[2J",
            b"\\u001b[2J",
        ];
        EXTREMES[self.below(EXTREMES.len())].iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_block_has_the_same_inputs_in_every_run_and_others_than_its_neighbours() {
        let corpus = [b"one line\nand a second one\n".to_vec(), b"\x01\x02\x03\x04".to_vec()];
        let inputs = |name, block| -> Vec<Vec<u8>> {
            let (mut random, mut input) = (Random::new(name, block), Vec::new());
            let mut next = || {
                random.next_input(&mut input, &corpus, 40);
                input.clone()
            };
            (0..100).map(|_| next()).collect()
        };
        let first = inputs("names", 0);
        assert_eq!(first, inputs("names", 0));
        assert_ne!(first, inputs("names", 1));
        assert_ne!(first, inputs("config", 0));
        assert!(first.iter().all(|input| input.len() <= 40));
        assert!(first.iter().any(|input| input.len() > 26), "nothing was inserted");
    }
}
