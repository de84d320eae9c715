//! Values of fio options: sizes, times, percentages, lists. Their notation is fio's (parse.c).

use super::job::{Amount, CommandPriority, Distribution, MemoryPolicy, SteadyMetric, SteadyState};
use crate::units::format_bytes_long;

/// The value of an option, with fio's `kb_base`.
pub(super) struct OptionValue<'a> {
    pub text: &'a str,
    /// 1024 or 1000.
    pub kb_base: u64,
}

type Parsed<T> = Result<T, String>;

impl OptionValue<'_> {
    pub(super) fn flag(&self) -> Parsed<bool> {
        match self.text {
            "" | "1" | "true" => Ok(true),
            "0" | "false" => Ok(false),
            _ => Err("0 or 1".into()),
        }
    }

    pub(super) fn number(&self) -> Parsed<u64> {
        number(self.text)
    }

    /// A number for a field that holds at most `u32`.
    pub(super) fn count(&self) -> Parsed<u32> {
        u32::try_from(self.number()?).map_err(|_| "too large".into())
    }

    pub(super) fn percent(&self) -> Parsed<u8> {
        percent(self.text.trim_end_matches('%'))
    }

    pub(super) fn bytes(&self) -> Parsed<u64> {
        self.bytes_of(self.text)
    }

    fn bytes_of(&self, text: &str) -> Parsed<u64> {
        bytes(text, self.kb_base)
    }

    /// Bytes or percent.
    pub(super) fn amount(&self) -> Parsed<Amount> {
        match self.text.trim_end_matches('%') {
            n if n.len() < self.text.len() => Ok(Amount::Percent(percent(n)?)),
            _ => self.bytes().map(Amount::Bytes),
        }
    }

    /// Microseconds; a number without a unit is of `unit` microseconds.
    pub(super) fn micros(&self, unit: u64) -> Parsed<u64> {
        micros(self.text, unit)
    }

    /// `low-high` or one value.
    pub(super) fn range<T: Copy>(&self, one: impl Fn(&Self, &str) -> Parsed<T>) -> Parsed<(T, T)> {
        match self.text.split_once('-') {
            Some((low, high)) => Ok((one(self, low.trim())?, one(self, high.trim())?)),
            None => one(self, self.text).map(|n| (n, n)),
        }
    }

    pub(super) fn byte_range(&self) -> Parsed<(u64, u64)> {
        let (low, high) = self.range(Self::bytes_of)?;
        if low <= high { Ok((low, high)) } else { Ok((high, low)) }
    }

    /// For reads, writes and trims: one value is for all, of two the second is for trims, too; an empty one sets nothing.
    pub(super) fn per_direction<T: Clone>(
        &self,
        into: &mut [T; 3],
        one: impl Fn(&OptionValue<'_>) -> Parsed<T>,
    ) -> Parsed<()> {
        let all: Vec<&str> = self.text.split(',').map(str::trim).collect();
        if all.len() > 3 {
            return Err("at most three values: reads, writes, trims".into());
        }
        for (direction, slot) in into.iter_mut().enumerate() {
            let text = all[direction.min(all.len() - 1)];
            if !text.is_empty() {
                *slot = one(&OptionValue { text, kb_base: self.kb_base })?;
            }
        }
        Ok(())
    }

    /// `4k/60:8k/:64k/10`: sizes with percentages; the rest is divided among those without.
    pub(super) fn block_split(&self) -> Parsed<Vec<(u64, u8)>> {
        self.shares(|text| match self.bytes_of(text)? {
            0 => Err("a block of 0".into()),
            size => Ok(size),
        })
    }

    fn shares<T>(&self, one: impl Fn(&str) -> Parsed<T>) -> Parsed<Vec<(T, u8)>> {
        let mut all = Vec::new();
        for part in self.text.split(':') {
            let (value, share) = part.split_once('/').unwrap_or((part, ""));
            let share = if share.is_empty() { None } else { Some(percent(share)?) };
            all.push((one(value.trim())?, share));
        }
        let given: u32 = all.iter().filter_map(|(_, share)| *share).map(u32::from).sum();
        let open = all.iter().filter(|(_, share)| share.is_none()).count() as u32;
        if given > 100 || (open == 0 && given != 100) {
            return Err(format!("percentages add up to {given}, not 100"));
        }
        let each = (100 - given).checked_div(open).unwrap_or(0) as u8;
        Ok(all.into_iter().map(|(value, share)| (value, share.unwrap_or(each))).collect())
    }

    /// `0-3,6` as numbers.
    pub(super) fn processors(&self) -> Parsed<Vec<usize>> {
        let mut all = Vec::new();
        for part in self.text.split([',', ':']) {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let [low, high] = [number(low.trim())?, number(high.trim())?];
            if low > high || high > 4095 {
                return Err("processors as in 0-3,6".into());
            }
            all.extend(low as usize..=high as usize);
        }
        Ok(all)
    }

    /// `block/percent[/class/level[/hint]]:...` of `cmdprio_bssplit`.
    pub(super) fn priority_split(&self) -> Parsed<Vec<CommandPriority>> {
        let one = |text: &str| {
            let parts: Vec<&str> = text.split('/').map(str::trim).collect();
            let small = |n: usize, most: u64| {
                let n = number(parts.get(n).unwrap_or(&"0"))?;
                u8::try_from(n).ok().filter(|_| n <= most).ok_or_else(|| format!("{text}: at most {most}"))
            };
            let priority = match parts.len() {
                2 => None,
                4 | 5 => Some((small(2, 3)?, small(3, 7)?, small(4, 7)?)),
                _ => return Err(format!("{text}: block/percent or block/percent/class/level")),
            };
            Ok(CommandPriority { block: self.bytes_of(parts[0])?, percent: percent(parts[1])?, priority })
        };
        self.text.split(':').map(one).collect()
    }

    /// `mode[:nodes]` of `numa_mem_policy`; the modes are those of set_mempolicy(2).
    pub(super) fn memory_policy(&self) -> Parsed<MemoryPolicy> {
        let (mode, nodes) = self.text.split_once(':').unwrap_or((self.text, ""));
        let number = ["default", "prefer", "bind", "interleave", "local"].iter().position(|name| *name == mode);
        let mode = number.ok_or("default, prefer:NODE, bind:NODES, interleave:NODES or local")? as i32;
        let nodes = match mode {
            1..=3 => OptionValue { text: nodes, kb_base: 1024 }.processors()?,
            _ => Vec::new(),
        };
        let is_wrong = mode == 1 && nodes.len() != 1 || nodes.iter().any(|n| *n >= 64);
        if is_wrong { Err("prefer takes one node; nodes are 0 to 63".into()) } else { Ok(MemoryPolicy { mode, nodes }) }
    }

    pub(super) fn distribution(&self) -> Parsed<Distribution> {
        let (kind, rest) = self.text.split_once(':').unwrap_or((self.text, ""));
        let shaped = |usual: u64| -> Parsed<(u64, Option<u64>)> {
            let (first, centre) = rest.split_once([':', ',']).map_or((rest, None), |(a, b)| (a, Some(b)));
            let first = if first.is_empty() { usual } else { millionths(first)? };
            Ok((first, centre.map(millionths).transpose()?))
        };
        let rest = OptionValue { text: rest, kb_base: self.kb_base };
        Ok(match kind {
            "random" => Distribution::Uniform,
            "zipf" => {
                let (theta, centre) = shaped(1_100_000)?;
                if theta == 0 || theta == 1_000_000 {
                    return Err("theta above 0 and other than 1".into());
                }
                Distribution::Zipf(theta, centre)
            }
            "pareto" => {
                let (power, centre) = shaped(200_000)?;
                if !(1..1_000_000).contains(&power) {
                    return Err("a power between 0 and 1".into());
                }
                Distribution::Pareto(power, centre)
            }
            "normal" => {
                let (deviation, centre) = shaped(0)?;
                if deviation > 100_000_000 {
                    return Err("a deviation of at most 100 percent".into());
                }
                Distribution::Normal(deviation, centre)
            }
            "zoned" => {
                let mut zones: [Vec<(u8, u8)>; 3] = Default::default();
                rest.per_direction(&mut zones, |v| Ok(swap(v.zones(percent, 100)?)))?;
                Distribution::Zoned(zones)
            }
            "zoned_abs" => {
                let mut zones: [Vec<(u8, u64)>; 3] = Default::default();
                rest.per_direction(&mut zones, |v| Ok(swap(v.zones(|text| v.bytes_of(text), u64::MAX)?)))?;
                Distribution::ZonedBytes(zones)
            }
            _ => return Err("random, zipf, pareto, normal, zoned or zoned_abs".into()),
        })
    }

    /// `access/size:access/size`: sizes with their share of accesses. A missing last size is the rest of `whole`.
    fn zones<T>(&self, size: impl Fn(&str) -> Parsed<T>, whole: T) -> Parsed<Vec<(T, u8)>>
    where
        T: Copy + Into<u64> + TryFrom<u64>,
    {
        let mut zones: Vec<(T, u8)> = Vec::new();
        let mut left: u64 = whole.into();
        let mut accesses = 100u8;
        for part in self.text.split(':') {
            let (share, text) = part.split_once('/').ok_or("accesses/size, separated by :")?;
            let share = if share.is_empty() { accesses } else { percent(share)? };
            let size = if text.is_empty() { T::try_from(left).map_err(|_| "a size is missing")? } else { size(text)? };
            left = left.checked_sub(size.into()).ok_or("the sizes add up to more than 100 percent")?;
            accesses = accesses.checked_sub(share).ok_or("the accesses add up to more than 100 percent")?;
            zones.push((size, share));
        }
        if accesses > 0 {
            return Err(format!("the accesses add up to {}, not 100", 100 - accesses));
        }
        Ok(zones)
    }

    /// `iops:5%`, `bw_slope:0.3%`, `lat:1000`.
    pub(super) fn steady_state(&self) -> Parsed<SteadyState> {
        let (what, limit) = self.text.split_once(':').ok_or("a metric and its limit, as in iops:5%")?;
        let (name, slope) = what.strip_suffix("_slope").map_or((what, false), |name| (name, true));
        let metric = match name {
            "iops" => SteadyMetric::Iops,
            "bw" => SteadyMetric::Bandwidth,
            "lat" => SteadyMetric::Latency,
            _ => return Err("iops, bw or lat, with or without _slope".into()),
        };
        let (number, percent) = limit.strip_suffix('%').map_or((limit, false), |n| (n, true));
        let limit = match millionths(number) {
            Ok(n) => n,
            Err(_) => self.bytes_of(number)?.saturating_mul(1_000_000),
        };
        Ok(SteadyState { metric, slope, limit_millionths: limit, percent })
    }

    /// `"text"`, `0xdeadface`, `-12`, or several of them.
    pub(super) fn pattern(&self) -> Parsed<Vec<u8>> {
        let text = self.text;
        if let Some(quoted) = text.strip_prefix('"') {
            let inner = quoted.strip_suffix('"').ok_or("a closing quotation mark is missing")?;
            return if inner.is_empty() { Err("an empty pattern".into()) } else { Ok(inner.bytes().collect()) };
        }
        if let Some(digits) = text.strip_prefix("0x") {
            let padded = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.into() };
            let byte = |n: usize| u8::from_str_radix(padded.get(n..n + 2)?, 16).ok();
            let all: Option<Vec<u8>> = (0..padded.len()).step_by(2).map(byte).collect();
            return all.filter(|bytes| !bytes.is_empty()).ok_or("not hexadecimal".into());
        }
        // A decimal number: its bytes in the machine's order, without leading zeros.
        let n: i64 = text.parse().map_err(|_| "\"text\" or a number")?;
        let bytes = n.to_le_bytes();
        let used = if n < 0 { 4 } else { 8 - (n.leading_zeros() as usize / 8) };
        Ok(bytes[..used.clamp(1, 8)].to_vec())
    }
}

fn swap<T>(pairs: Vec<(T, u8)>) -> Vec<(u8, T)> {
    pairs.into_iter().map(|(size, share)| (share, size)).collect()
}

fn number(text: &str) -> Parsed<u64> {
    let text = text.trim();
    let parsed = text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u64::from_str_radix(hex, 16));
    parsed.map_err(|_| format!("{text}: not a number"))
}

fn percent(text: &str) -> Parsed<u8> {
    text.trim().parse().ok().filter(|n| *n <= 100).ok_or_else(|| "a percentage is 0 to 100".into())
}

/// A decimal number, in millionths.
pub(super) fn millionths(text: &str) -> Parsed<u64> {
    let n: f64 = text.trim().parse().map_err(|_| format!("{text}: not a number"))?;
    if (0.0..=1e9).contains(&n) { Ok((n * 1e6).round() as u64) } else { Err(format!("{text}: out of range")) }
}

/// fio's sizes: `k`, `m`, `g`, `t`, `p` with or without `b` are powers of `kb_base`, and `ki`, `mib` and the like are
/// powers of the other base: with the usual `kb_base=1024`, `4KiB` is 4000 bytes.
pub(super) fn bytes(text: &str, kb_base: u64) -> Parsed<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text
        .strip_prefix("0x")
        .map_or(text.len(), |hex| 2 + hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len()));
    let digits =
        if text.starts_with("0x") { digits } else { text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()) };
    let (number_text, unit) = text.split_at(digits);
    let n = number(number_text).map_err(|_| not_a_size(&text))?;
    let (powers, other) = match unit {
        "" | "b" => (0, false),
        _ => {
            let power = ["k", "m", "g", "t", "p"].iter().position(|p| unit.starts_with(p));
            let power = power.ok_or_else(|| not_a_size(&text))? as u32 + 1;
            match &unit[1..] {
                "" | "b" | "i" => (power, false),
                "ib" => (power, true),
                _ => return Err(not_a_size(&text)),
            }
        }
    };
    let base = if other { if kb_base == 1000 { 1024 } else { 1000 } } else { kb_base };
    base.checked_pow(powers).and_then(|unit| n.checked_mul(unit)).ok_or_else(|| format!("{text}: too large"))
}

fn not_a_size(text: &str) -> String {
    format!("{text}: not a size; a whole number with k, m, g, t, as in {}", format_bytes_long(4096).replace(' ', ""))
}

/// fio's times in microseconds.
fn micros(text: &str, unit_us: u64) -> Parsed<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let n = number(&text[..digits])?;
    let unit = match &text[digits..] {
        "" => unit_us,
        "us" | "usec" => 1,
        "ms" | "msec" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return Err(format!("{text}: not a time; us, ms, s, m, h or d")),
    };
    n.checked_mul(unit).filter(|us| *us <= 366 * 86_400_000_000).ok_or_else(|| format!("{text}: too long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> OptionValue<'_> {
        OptionValue { text, kb_base: 1024 }
    }

    #[test]
    fn sizes_are_fios() {
        let all = [("4096", 4096), ("4k", 4096), ("4KB", 4096), ("4KiB", 4000), ("1m", 1 << 20), ("0x10k", 16 << 10)];
        for (text, n) in all {
            assert_eq!(bytes(text, 1024), Ok(n), "{text}");
        }
        assert_eq!((bytes("4k", 1000), bytes("4KiB", 1000)), (Ok(4000), Ok(4096)));
        for wrong in ["", "k", "4q", "4kx", "-1", "99999999t"] {
            assert!(bytes(wrong, 1024).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_for_each_direction_are_fios() {
        let list = |text: &'static str| {
            let mut all = [7u64; 3];
            value(text).per_direction(&mut all, |v| v.bytes()).map(|()| all)
        };
        assert_eq!(list("4k"), Ok([4096; 3]));
        assert_eq!(list("1,2"), Ok([1, 2, 2]));
        assert_eq!(list(",2"), Ok([7, 2, 2]));
        assert_eq!(list("1,"), Ok([1, 7, 7]));
        assert!(list("1,2,3,4").is_err());
    }

    #[test]
    fn splits_zones_and_patterns_are_parsed() {
        assert_eq!(value("4k/50:8k/:16k/").block_split(), Ok(vec![(4096, 50), (8192, 25), (16384, 25)]));
        assert!(value("4k/50:8k/20").block_split().is_err());
        let zones = vec![(50, 5), (30, 15), (20, 80)];
        let zoned = Distribution::Zoned([zones.clone(), zones.clone(), zones]);
        assert_eq!(value("zoned:50/5:30/15:20/").distribution(), Ok(zoned.clone()));
        assert_eq!(value("zoned:50/5:30/15:20/80").distribution(), Ok(zoned));
        assert!(value("zoned:50/5:30/15").distribution().is_err());
        assert_eq!(value("zipf:1.2").distribution(), Ok(Distribution::Zipf(1_200_000, None)));
        assert_eq!(value("0xaa5").pattern(), Ok(vec![0x0a, 0xa5]));
        assert_eq!(value("\"ab\"").pattern(), Ok(vec![b'a', b'b']));
    }

    #[test]
    fn times_have_their_units() {
        assert_eq!((micros("30", 1_000_000), micros("250ms", 1), micros("7", 1)), (Ok(30_000_000), Ok(250_000), Ok(7)));
        assert!(micros("5x", 1).is_err() && micros("9999999d", 1).is_err());
    }
}
