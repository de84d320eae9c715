//! What people call the containers of this machine.

use super::raw_bytes::RawBytes;
use crate::sanitize::sanitize;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Digits of a container's ID that hints, labels and runtimes show.
pub(crate) const SHORT_ID: usize = 12;

/// Stands in a hint between a container and the outermost one that it is in.
pub(crate) const WITHIN: &str = " in ";

/// A container as its runtime's state files describe it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerName {
    /// 64 hexadecimal digits.
    pub id: String,
    /// `docker`, `podman`, `containerd` or `crio`.
    pub runtime: String,
    /// Its name, sanitized; of a container in a pod the name there, and `(pod)` for the one that holds the pod.
    pub name: String,
    /// Kubernetes' pod, sanitized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Kubernetes' namespace, sanitized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Kubernetes' unique ID of the pod, as in the directories of kubelet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
}

impl ContainerName {
    /// `podman:web`, or `NAMESPACE/POD/CONTAINER`.
    fn label(&self) -> String {
        match (&self.namespace, &self.pod) {
            (Some(namespace), Some(pod)) => format!("{namespace}/{pod}/{}", self.name),
            _ => format!("{}:{}", self.runtime, self.name),
        }
    }
}

/// A container and its label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownContainer {
    pub(crate) container: ContainerName,
    /// As shown: `podman:web`, or `NAMESPACE/POD/CONTAINER`.
    pub(crate) label: Box<str>,
}

/// The named containers, found by the hint that a control group's name gives (`docker:0123456789ab`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ContainerNames {
    by_short_id: HashMap<Box<str>, KnownContainer>,
    /// `NAMESPACE/POD` by the unique ID of the pod.
    pods: HashMap<Box<str>, Box<str>>,
}

impl ContainerNames {
    pub(crate) fn new(containers: &[ContainerName]) -> Self {
        let clean = |text: &Option<String>| text.as_ref().map(|text| sanitize(text.as_bytes()));
        let known = containers.iter().filter(|container| is_container_id(&container.id)).map(|container| {
            let container = ContainerName {
                name: sanitize(container.name.as_bytes()),
                runtime: sanitize(container.runtime.as_bytes()),
                pod: clean(&container.pod),
                namespace: clean(&container.namespace),
                ..container.clone()
            };
            (container.id[..SHORT_ID].into(), KnownContainer { label: container.label().into(), container })
        });
        let by_short_id: HashMap<Box<str>, KnownContainer> = known.collect();
        let pod = |known: &KnownContainer| {
            let ContainerName { pod, namespace, pod_uid, .. } = &known.container;
            let name = format!("{}/{}", namespace.as_ref()?, pod.as_ref()?);
            Some((pod_uid.as_deref()?.into(), name.into()))
        };
        let pods = by_short_id.values().filter_map(pod).collect();
        Self { by_short_id, pods }
    }

    /// What people call a device with these mount points that is a volume of a pod: `VOLUME of NAMESPACE/POD`; sanitized. A
    /// volume of a container storage interface has the name of its persistent volume. `None` for a device that is mounted
    /// elsewhere, too, such as the disk of the host on which a local volume is a directory.
    pub(crate) fn volume_name<'m>(&self, mount_points: impl IntoIterator<Item = &'m RawBytes>) -> Option<String> {
        let mut found = None;
        for point in mount_points {
            if !point.as_bytes().split(|byte| *byte == b'/').any(|part| part == b"kubelet") {
                return None;
            }
            found = found.or_else(|| pod_and_volume(point.as_bytes()));
        }
        let (uid, volume) = found?;
        let pod = std::str::from_utf8(uid).ok().and_then(|uid| self.pods.get(uid));
        let pod = pod.map_or_else(|| format!("pod {}", sanitize(uid)), |pod| pod.to_string());
        Some(format!("{} of {pod}", sanitize(volume)))
    }

    /// The container that a hint is about. Of a container within another, the state files of which lie in that other one, the
    /// outer container.
    pub(crate) fn find(&self, hint: &str) -> Option<&KnownContainer> {
        hint.split(WITHIN).find_map(|hint| self.by_short_id.get(hint.rsplit_once(':')?.1))
    }

    /// Whether the container itself has a name, not only one that it is in.
    pub(crate) fn has_innermost(&self, hint: &str) -> bool {
        hint.split(WITHIN).next().is_some_and(|inner| self.find(inner).is_some())
    }
}

/// Whether kubelet made this mount point for a volume that is a block device: its node is mounted there.
pub(crate) fn is_block_volume(mount_point: &[u8]) -> bool {
    let mut parts = mount_point.split(|byte| *byte == b'/').skip_while(|part| *part != b"kubelet");
    parts.any(|part| part == b"volumeDevices")
}

/// The pod's unique ID and the name of the volume of a mount point of a block device that kubelet made (kubernetes,
/// pkg/volume/csi/csi_block.go and pkg/volume/util): below `volumeDevices`, `publish/VOLUME/UID`, `VOLUME/dev/UID` or, of the
/// plugins in kubelet, `VOLUME/UID`; the node's own is `staging/VOLUME`. Below `pods/UID`, `PLUGIN/VOLUME`.
fn pod_and_block_volume(mount_point: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut parts = mount_point.split(|byte| *byte == b'/').skip_while(|part| *part != b"kubelet").skip(1);
    let (kind, uid) = (parts.next()?, parts.next()?);
    let rest: Vec<&[u8]> = parts.skip_while(|part| *part != b"volumeDevices").skip(1).collect();
    match (kind, &rest[..]) {
        (_, [b"staging", _]) => None,
        (b"pods", [plugin, volume]) if plugin.starts_with(b"kubernetes.io~") => Some((uid, *volume)),
        (b"plugins", [b"publish", volume, uid] | [volume, b"dev", uid] | [volume, uid]) => Some((*uid, *volume)),
        _ => None,
    }
}

/// The pod's unique ID and the name of the volume of a mount point that kubelet made:
/// `/var/lib/kubelet/pods/UID/volumes/PLUGIN/VOLUME`, and `/mount` below it for the container storage interface; and of a
/// block volume.
fn pod_and_volume(mount_point: &[u8]) -> Option<(&[u8], &[u8])> {
    if is_block_volume(mount_point) {
        return pod_and_block_volume(mount_point);
    }
    let mut parts = mount_point.split(|byte| *byte == b'/').skip_while(|part| *part != b"kubelet");
    let (_, pods, uid, volumes, plugin) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let volume = parts.next().filter(|volume| !volume.is_empty())?;
    let is_end = matches!((parts.next(), parts.next()), (None, _) | (Some(b"mount"), None));
    (pods == b"pods" && volumes == b"volumes" && plugin.starts_with(b"kubernetes.io~") && is_end)
        .then_some((uid, volume))
}

/// A 64-digit hexadecimal container ID.
pub(crate) fn is_container_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Hints of containers that have no name yet, so that names are asked for once for each.
#[derive(Debug, Clone, Default)]
pub(crate) struct UnnamedContainers {
    noted: HashSet<Arc<str>>,
    is_new: bool,
}

/// Hints that are remembered; beyond it all are forgotten.
const MAX_UNNAMED: usize = 4096;

impl UnnamedContainers {
    /// Notes a container that has no name.
    pub(crate) fn note(&mut self, hint: &Arc<str>) {
        // The names of these are in their control groups.
        if hint.starts_with("lxc:") || hint.starts_with("machine:") || self.noted.contains(hint) {
            return;
        }
        if self.noted.len() >= MAX_UNNAMED {
            self.noted.clear();
        }
        self.noted.insert(hint.clone());
        self.is_new = true;
    }

    /// Whether one was noted since names last arrived.
    pub(crate) fn has_new(&self) -> bool {
        self.is_new
    }

    /// Names are asked for, or arrived: those noted so far are no reason to ask again.
    pub(crate) fn clear_new(&mut self) {
        self.is_new = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(name: &str, pod: Option<&str>) -> ContainerName {
        ContainerName {
            id: "0123456789abcdef".repeat(4),
            runtime: "podman".into(),
            name: name.into(),
            pod: pod.map(str::to_owned),
            namespace: pod.map(|_| "shop".to_owned()),
            pod_uid: None,
        }
    }

    fn label(container: ContainerName) -> Option<String> {
        let names = ContainerNames::new(&[container]);
        Some(names.find("libpod:0123456789ab")?.label.to_string())
    }

    #[test]
    fn a_container_is_labelled_with_its_runtime_or_its_pod() {
        assert_eq!(label(container("web", None)).as_deref(), Some("podman:web"));
        assert_eq!(label(container("nginx", Some("web-7d9f"))).as_deref(), Some("shop/web-7d9f/nginx"));
        assert_eq!(label(container("a\x1b[2Jb", None)).as_deref(), Some("podman:a\\x1b[2Jb"));
        assert_eq!(label(ContainerName { id: "é".repeat(64), ..container("web", None) }), None);
    }

    #[test]
    fn a_container_within_another_is_called_by_the_outer_one_until_it_has_a_name() {
        let inner = ContainerName { id: "f".repeat(64), ..container("inner", None) };
        let hint = "podman:ffffffffffff in podman:0123456789ab";
        let names = ContainerNames::new(&[container("web", None)]);
        assert_eq!(names.find(hint).map(|known| &*known.label), Some("podman:web"));
        assert!(!names.has_innermost(hint));
        let names = ContainerNames::new(&[container("web", None), inner]);
        assert_eq!(names.find(hint).map(|known| &*known.label), Some("podman:inner"));
        assert!(names.has_innermost(hint));
    }

    #[test]
    fn volumes_of_pods_are_named_by_pod() {
        let names = ContainerNames::new(&[ContainerName {
            pod_uid: Some("0a1b-22".into()),
            ..container("nginx", Some("web-7d9f"))
        }]);
        let global = RawBytes::from("/var/lib/kubelet/plugins/kubernetes.io/csi/driver/77aa/globalmount");
        let name = |point: &str| names.volume_name([&global, &RawBytes::from(point)]);
        let volumes = |uid: &str, rest: &str| format!("/var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~{rest}");
        assert_eq!(name(&volumes("0a1b-22", "csi/pvc-9/mount")).as_deref(), Some("pvc-9 of shop/web-7d9f"));
        assert_eq!(name(&volumes("0a1b-22", "local-volume/data")).as_deref(), Some("data of shop/web-7d9f"));
        assert_eq!(name(&volumes("77", "csi/pvc-9/mount")).as_deref(), Some("pvc-9 of pod 77"));
        let local = RawBytes::from(&*volumes("0a1b-22", "local-volume/data"));
        assert_eq!(names.volume_name([&RawBytes::from("/"), &local]), None, "the disk of the host");
        let devices = "/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices";
        for block in ["publish/pvc-7/0a1b-22", "pvc-7/dev/0a1b-22"] {
            assert_eq!(name(&format!("{devices}/{block}")).as_deref(), Some("pvc-7 of shop/web-7d9f"), "{block}");
        }
        let in_tree = "/var/lib/kubelet/plugins/kubernetes.io/local-volume/volumeDevices/disk-1/0a1b-22";
        assert_eq!(name(in_tree).as_deref(), Some("disk-1 of shop/web-7d9f"));
        assert_eq!(name(&format!("{devices}/staging/pvc-7")), None, "the node's own");
        for other in [&volumes("0a1b-22", "csi/pvc-9/mount/sub"), "/srv/pods/1/volumes/x/y", "/var/lib/kubelet/pods/1"]
        {
            assert_eq!(name(other), None, "{other}");
        }
    }

    #[test]
    fn a_container_without_a_name_is_a_reason_to_ask_once() {
        let mut unnamed = UnnamedContainers::default();
        unnamed.note(&"lxc:web".into());
        assert!(!unnamed.has_new(), "its name is its hint");
        let hint: Arc<str> = "podman:0123456789ab".into();
        unnamed.note(&hint);
        assert!(unnamed.has_new());
        unnamed.clear_new();
        unnamed.note(&hint);
        assert!(!unnamed.has_new());
    }
}
