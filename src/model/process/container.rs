//! Finds the container of a control group, by the names that container runtimes give their groups.

use crate::model::containers::{SHORT_ID, WITHIN, is_container_id};

/// `docker:0123456789ab`, `podman:…`, `containerd:…`, `crio:…`, `lxc:NAME`, `machine:NAME`, or `None`
/// for a group of no known runtime. Of a container within others, `INNERMOST in OUTERMOST`.
pub(crate) fn hint(cgroup: &str) -> Option<String> {
    let mut nested = cgroup.rsplit('/').filter_map(runtime_and_id);
    let inner = nested.next()?;
    Some(match nested.next_back() {
        Some(outer) if outer != inner => format!("{inner}{WITHIN}{outer}"),
        _ => inner,
    })
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
            return Some(format!("{runtime}:{}", &id[..SHORT_ID]));
        }
    }
    for (prefix, runtime) in [("lxc.payload.", "lxc"), ("machine-", "machine")] {
        if let Some(rest) = bare.strip_prefix(prefix).filter(|rest| !rest.is_empty()) {
            return Some(format!("{runtime}:{rest}"));
        }
    }
    is_container_id(bare).then(|| format!("container:{}", &bare[..SHORT_ID]))
}

/// The systemd unit of a control group: the last part of its path that is a service or a scope, else a slice. `None` for
/// a group that systemd did not make.
pub(crate) fn unit(cgroup: &str) -> Option<&str> {
    let last = |suffixes: &[&str]| cgroup.rsplit('/').find(|part| suffixes.iter().any(|suffix| part.ends_with(suffix)));
    last(&[".service", ".scope"]).or_else(|| last(&[".slice"]))
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
            (format!("/lxc.payload.web1/system.slice/docker-{id}.scope"), Some("docker:0123456789ab in lxc:web1")),
            (format!("/libpod_parent/libpod-{id}/libpod-payload-{id}"), Some("podman:0123456789ab")),
            ("/system.slice/postgresql.service".into(), None),
            ("/docker-nothex.scope".into(), None),
            ("/".into(), None),
        ] {
            assert_eq!(hint(&path).as_deref(), want, "{path}");
        }
    }

    #[test]
    fn the_unit_is_the_innermost_service_scope_or_slice() {
        for (path, want) in [
            ("/system.slice/postgresql.service", Some("postgresql.service")),
            ("/user.slice/user-0.slice/session-3.scope", Some("session-3.scope")),
            ("/user.slice/user-1000.slice/user@1000.service/app.slice/x", Some("user@1000.service")),
            ("/machine.slice", Some("machine.slice")),
            ("/docker/abc", None),
        ] {
            assert_eq!(unit(path), want, "{path}");
        }
    }
}
