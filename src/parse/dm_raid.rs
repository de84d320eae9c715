//! Status line of device mapper's RAID target (Documentation/admin-guide/device-mapper/dm-raid.rst, drivers/md/dm-raid.c),
//! which LVM's RAID volumes are made of.

use super::bytes::{parse_u64, words};

/// The used parts of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DmRaidStatus {
    /// `raid1`, `raid5`, `raid10` ..., without the variant of its layout (`raid5_ls`).
    pub level: String,
    pub members: u64,
    /// Members that have failed, or whose content is being rebuilt.
    pub missing: u64,
    /// `idle`, `resync`, `recover` ...; empty where an old kernel does not say it.
    pub sync_action: String,
    /// Sectors in sync and sectors in all.
    pub sync_sectors: Option<(u64, u64)>,
    /// Sectors that differed in the last check.
    pub mismatched_sectors: u64,
}

/// Parses the part of the line behind `raid`: `raid1 2 AD 2048/2048 idle 0 0 -`. `None` if it is no such line.
pub(crate) fn parse_dm_raid_status(line: &[u8]) -> Option<DmRaidStatus> {
    let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
    let mut words = words(line);
    let level = words.next()?.split(|b| *b == b'_').next().map(text)?;
    let members = parse_u64(words.next()?)?;
    let health = words.next()?;
    let ratio = words.next()?;
    let slash = ratio.iter().position(|b| *b == b'/')?;
    let sync_sectors = parse_u64(&ratio[..slash]).zip(parse_u64(&ratio[slash + 1..]));
    let sync_action = words.next().map(text).unwrap_or_default();
    let mismatched_sectors = words.next().and_then(parse_u64).unwrap_or_default();
    // `A` is in sync, `D` has failed, `-` is not there. `a` is not in sync: while a new array is made equal (resync) every
    // member is so, and none is missing.
    let is_rebuild = sync_action == "recover";
    let is_missing = |member: &&u8| matches!(**member, b'D' | b'-') || (**member == b'a' && is_rebuild);
    let missing = health.iter().filter(is_missing).count() as u64;
    Some(DmRaidStatus { level, members, missing, sync_action, sync_sectors, mismatched_sectors })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(line: &str) -> DmRaidStatus {
        parse_dm_raid_status(line.as_bytes()).unwrap()
    }

    #[test]
    fn failed_and_rebuilt_members_are_missing() {
        let expected = DmRaidStatus {
            level: "raid5".into(),
            members: 3,
            missing: 1,
            sync_action: "idle".into(),
            sync_sectors: Some((2048, 2048)),
            mismatched_sectors: 8,
        };
        assert_eq!(status("raid5_ls 3 AAD 2048/2048 idle 8 0 -"), expected);
        assert_eq!(status("raid1 2 Aa 512/2048 recover 0 0 -").missing, 1);
        assert_eq!(status("raid1 2 aa 512/2048 resync 0 0 -").missing, 0, "it is made equal for the first time");
        assert_eq!(status("raid6_zr 4 A-DA 2048/2048 idle 0").missing, 2);
        assert_eq!(status("raid1 2 AA 2048/2048").sync_action, "", "an old kernel");
    }

    #[test]
    fn other_lines_are_no_status() {
        for line in ["", "2 128 8:0 0 8:16 0", "raid1 two AA 1/1", "raid1 2 AA", "raid1 2 AA 7"] {
            assert_eq!(parse_dm_raid_status(line.as_bytes()), None, "{line}");
        }
    }
}
