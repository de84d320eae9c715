//! Native NVMe multipath: a namespace that several controllers can reach is a disk, the head `nvme0n1`, with a hidden disk
//! for each path, `nvme0c1n1`. File systems and users know the head; the requests are those of the paths.

use super::disk::DevId;

/// The name of the head of a path; `None` if the name is that of another device.
fn head_name(path: &str) -> Option<String> {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (subsystem, rest) = path.strip_prefix("nvme")?.split_once('c')?;
    let (controller, namespace) = rest.split_once('n')?;
    [subsystem, controller, namespace].into_iter().all(number).then(|| format!("nvme{subsystem}n{namespace}"))
}

/// Each path with its head, of disks given by number, name and completed requests. A head that has completed none does not
/// count them (before Linux 6.4, or with `iostats` off): its paths are left out, since they alone show the load.
pub(crate) fn paths_with_heads<'a>(
    disks: impl Iterator<Item = (DevId, &'a str, u64)> + Clone,
) -> impl Iterator<Item = (DevId, DevId)> {
    let heads = disks.clone();
    // A kernel that does not tell the number of a hidden disk says 0:0.
    let paths = disks.filter(|(id, ..)| *id != DevId::default());
    paths.filter_map(move |(path, name, _)| {
        let head = head_name(name)?;
        let mut heads = heads.clone().filter(|(_, name, completed)| **name == *head && *completed > 0);
        heads.next().map(|(id, ..)| (path, id))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_told_from_other_disks_by_its_name() {
        assert_eq!(head_name("nvme0c1n1").as_deref(), Some("nvme0n1"));
        assert_eq!(head_name("nvme12c34n56").as_deref(), Some("nvme12n56"));
        for other in ["nvme0n1", "nvme0n1p1", "nvme0c1", "nvme0c1n1p1", "nvmec1n1", "sdc1n1", "loop0"] {
            assert_eq!(head_name(other), None, "{other}");
        }
    }

    #[test]
    fn paths_are_counted_for_heads_that_count() {
        let id = |minor| DevId { major: 259, minor };
        let disks = [
            (id(0), "nvme0c0n1", 9),
            (id(1), "nvme0c1n1", 0),
            (id(2), "nvme0n1", 9),
            (id(3), "nvme1c0n1", 9),
            (id(4), "nvme1n1", 0),
            (id(5), "nvme2c0n1", 9),
            (DevId::default(), "nvme3c0n1", 9),
            (id(6), "nvme3n1", 9),
        ];
        assert!(paths_with_heads(disks.into_iter()).eq([(id(0), id(2)), (id(1), id(2))]));
    }
}
