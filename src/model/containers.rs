//! What people call the containers of this machine.

use crate::sanitize::sanitize;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Digits of a container's ID that hints, labels and runtimes show.
pub(crate) const SHORT_ID: usize = 12;

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
        Self { by_short_id: known.collect() }
    }

    /// The container that a hint is about.
    pub(crate) fn find(&self, hint: &str) -> Option<&KnownContainer> {
        self.by_short_id.get(hint.rsplit_once(':')?.1)
    }
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
