//! `/proc/PID/limits` (proc_pid_limits(5)).

use crate::model::process::ResourceLimit;
use crate::parse::bytes::{lines, parse_u64, words};
use crate::sanitize::sanitize;

/// Parses the file; malformed lines are skipped.
pub(crate) fn parse(text: &[u8]) -> impl Iterator<Item = ResourceLimit> {
    lines(text).skip(1).filter_map(parse_line)
}

/// Parses `Max open files            1024                 4096                 files`. The name column has 25
/// characters, because names contain spaces.
fn parse_line(line: &[u8]) -> Option<ResourceLimit> {
    let (name, rest) = line.split_at_checked(25)?;
    let mut words = words(rest);
    let mut value = || match words.next()? {
        b"unlimited" => Some(None),
        digits => parse_u64(digits).map(Some),
    };
    let (soft, hard) = (value()?, value()?);
    let unit = sanitize(words.next().unwrap_or_default());
    Some(ResourceLimit { name: sanitize(name.trim_ascii()), soft, hard, unit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_names_may_contain_spaces() {
        let text = b"Limit                     Soft Limit           Hard Limit           Units     \n\
            Max open files            1024                 524288               files     \n\
            Max core file size        0                    unlimited            bytes     \n\
            Max nice priority         0                    0                    \n\
            cut off";
        let all: Vec<_> = parse(text).collect();
        assert_eq!(all.len(), 3);
        assert_eq!((&*all[0].name, all[0].soft, all[0].hard), ("Max open files", Some(1024), Some(524_288)));
        assert_eq!((all[1].hard, &*all[1].unit), (None, "bytes"));
        assert_eq!(all[2].unit, "");
    }
}
