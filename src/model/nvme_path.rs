//! Native NVMe multipath: a namespace that several controllers can reach is a disk, the head `nvme0n1`, with a hidden disk
//! for each path, `nvme0c1n1`. File systems and users know the head; the requests are those of the paths.

use super::disk::DevId;

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The numbers of subsystem, controller and namespace of a path; `None` if the name is that of another device.
fn path_numbers(path: &str) -> Option<[&str; 3]> {
    let (subsystem, rest) = path.strip_prefix("nvme")?.split_once('c')?;
    let (controller, namespace) = rest.split_once('n')?;
    Some([subsystem, controller, namespace]).filter(|numbers| numbers.iter().all(|text| is_number(text)))
}

/// The name of the head of a path; `None` if the name is that of another device.
fn head_name(path: &str) -> Option<String> {
    path_numbers(path).map(|[subsystem, _, namespace]| format!("nvme{subsystem}n{namespace}"))
}

/// The name of the head if this is a path through that controller, as `nvme1`.
pub(crate) fn head_behind(controller: &str, path: &str) -> Option<String> {
    let number = path_numbers(path)?[1];
    head_name(path).filter(|_| controller.strip_prefix("nvme") == Some(number))
}

/// Whether a namespace has the number of that controller in its name: `nvme1n1` of `nvme1`. A subsystem with several
/// controllers has the number of the first one of them (nvme_init_subsystem).
pub(crate) fn is_namespace_of(controller: &str, name: &str) -> bool {
    let is_controller = controller.strip_prefix("nvme").is_some_and(is_number);
    is_controller && name.strip_prefix(controller).and_then(|rest| rest.strip_prefix('n')).is_some_and(is_number)
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
    fn namespaces_are_told_by_their_controller() {
        assert_eq!(head_behind("nvme1", "nvme0c1n2").as_deref(), Some("nvme0n2"));
        assert_eq!([head_behind("nvme0", "nvme0c1n2"), head_behind("nvme1", "nvme1n1")], [None, None]);
        assert!(is_namespace_of("nvme1", "nvme1n1") && is_namespace_of("nvme10", "nvme10n2"));
        for other in ["nvme10n1", "nvme1n1p1", "nvme1", "nvme1c1n1", "nvme1n"] {
            assert!(!is_namespace_of("nvme1", other), "{other}");
        }
        assert!(!is_namespace_of("nvme", "nvmen1"));
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
