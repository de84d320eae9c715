//! Finds the container of a control group, by the names that container runtimes give their groups.

/// `docker:0123456789ab`, `podman:…`, `containerd:…`, `crio:…`, `lxc:NAME`, `machine:NAME`, or `None`
/// for a group of no known runtime.
pub(crate) fn hint(cgroup: &str) -> Option<String> {
    cgroup.rsplit('/').find_map(runtime_and_id)
}

fn runtime_and_id(name: &str) -> Option<String> {
    let bare = name.strip_suffix(".scope").or_else(|| name.strip_suffix(".service")).unwrap_or(name);
    for (prefix, runtime) in [
        ("docker-", "docker"),
        ("libpod-payload-", "podman"),
        ("libpod-", "podman"),
        ("cri-containerd-", "containerd"),
        ("crio-", "crio"),
    ] {
        if let Some(id) = bare.strip_prefix(prefix).filter(|id| is_container_id(id)) {
            return Some(format!("{runtime}:{}", &id[..12]));
        }
    }
    for (prefix, runtime) in [("lxc.payload.", "lxc"), ("machine-", "machine")] {
        if let Some(rest) = bare.strip_prefix(prefix).filter(|rest| !rest.is_empty()) {
            return Some(format!("{runtime}:{rest}"));
        }
    }
    is_container_id(bare).then(|| format!("container:{}", &bare[..12]))
}

/// A 64-digit hexadecimal container id.
fn is_container_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_recognised_by_cgroup_name() {
        let id = "0123456789abcdef".repeat(4);
        for (path, want) in [
            (format!("/system.slice/docker-{id}.scope"), Some("docker:0123456789ab")),
            (format!("/docker/{id}"), Some("container:0123456789ab")),
            (format!("/machine.slice/libpod-{id}.scope/container"), Some("podman:0123456789ab")),
            (format!("/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope"), Some("containerd:0123456789ab")),
            ("/lxc.payload.web1/init.scope".into(), Some("lxc:web1")),
            ("/system.slice/postgresql.service".into(), None),
            ("/docker-nothex.scope".into(), None),
            ("/".into(), None),
        ] {
            assert_eq!(hint(&path).as_deref(), want, "{path}");
        }
    }
}
