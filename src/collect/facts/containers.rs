//! Names of containers, from the state files of podman, docker, containerd and CRI-O. No daemon is asked.
//!
//! - containers/storage (podman, CRI-O): `overlay-containers/containers.json` has the names, also after `podman rename`;
//!   `overlay-containers/ID/userdata/config.json`, an OCI configuration, has CRI-O's annotations.
//! - docker: `containers/ID/config.v2.json` below its data root.
//! - containerd: `io.containerd.runtime.v2.task/NAMESPACE/ID/config.json`, an OCI configuration with annotations of its
//!   Kubernetes plugin (`io.kubernetes.cri.*`) or of nerdctl.
//!
//! A host name is no container name: with the host's network it is that of the host.

use crate::model::containers::{ContainerName, is_container_id};
use crate::root::Root;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

/// Containers that are named at most.
const MAX_CONTAINERS: usize = 5000;
/// Users whose containers are looked for.
const MAX_USERS: usize = 100;
/// Size of a state file at most.
const MAX_BYTES: u64 = 8 << 20;

/// The containers of all runtimes that keep their state in the usual places.
pub(crate) fn read_container_names(root: &Root) -> Vec<ContainerName> {
    let mut found = Found::default();
    let system = |path: &str| root.base().join(path);
    for directory in ["run/containers/storage", "var/lib/containers/storage"] {
        found.add_containers_storage(&system(directory), None);
    }
    for (home, uid) in users_with_containers(root) {
        found.add_containers_storage(&root.base().join(home).join(".local/share/containers/storage"), Some(uid));
    }
    found.add_docker(&docker_data_root(root));
    for directory in ["run/containerd", "run/k3s/containerd"] {
        for runtime in ["io.containerd.runtime.v2.task", "io.containerd.runtime.v1.linux"] {
            found.add_containerd(&system(directory).join(runtime));
        }
    }
    let mut all: Vec<ContainerName> = found.by_id.into_values().collect();
    all.sort_by(|a, b| a.id.cmp(&b.id));
    all
}

#[derive(Debug, Default)]
struct Found {
    by_id: HashMap<String, ContainerName>,
}

impl Found {
    fn add(&mut self, container: ContainerName) {
        // A container of a pod is in the list of containers/storage, too, under a name made of several.
        let has_pod = self.by_id.get(&container.id).is_some_and(|known| known.pod.is_some());
        let is_usable = is_container_id(&container.id) && !container.name.is_empty();
        if is_usable && !has_pod && self.by_id.len() < MAX_CONTAINERS {
            self.by_id.insert(container.id.clone(), container);
        }
    }

    fn add_containers_storage(&mut self, storage: &Path, owner: Option<u32>) {
        for driver in subdirectories(storage).into_iter().filter(|name| name.ends_with("-containers")) {
            let directory = storage.join(driver);
            for list in ["containers.json", "volatile-containers.json"] {
                let stored: Vec<StoredContainer> = read_json(&directory.join(list), owner).unwrap_or_default();
                for container in stored {
                    let Some(name) = container.names.into_iter().next() else { continue };
                    self.add(ContainerName {
                        id: container.id,
                        runtime: "podman".into(),
                        name,
                        ..ContainerName::default()
                    });
                }
            }
            for id in subdirectories(&directory).into_iter().filter(|name| is_container_id(name)) {
                let config: Option<OciConfig> = read_json(&directory.join(&id).join("userdata/config.json"), owner);
                config.and_then(|config| config.crio_name(id)).into_iter().for_each(|container| self.add(container));
            }
        }
    }

    fn add_docker(&mut self, data_root: &Path) {
        let directory = data_root.join("containers");
        for id in subdirectories(&directory).into_iter().filter(|name| is_container_id(name)) {
            let config: Option<DockerConfig> = read_json(&directory.join(&id).join("config.v2.json"), None);
            let Some(config) = config else { continue };
            let labels = &config.config.labels;
            let label = |name: &str| labels.get(name).cloned();
            self.add(ContainerName {
                name: label("io.kubernetes.container.name").unwrap_or(config.name.trim_start_matches('/').to_owned()),
                pod: label("io.kubernetes.pod.name"),
                namespace: label("io.kubernetes.pod.namespace"),
                pod_uid: label("io.kubernetes.pod.uid"),
                runtime: "docker".into(),
                id,
            });
        }
    }

    fn add_containerd(&mut self, tasks: &Path) {
        for namespace in subdirectories(tasks) {
            let directory = tasks.join(namespace);
            for id in subdirectories(&directory).into_iter().filter(|name| is_container_id(name)) {
                let config: Option<OciConfig> = read_json(&directory.join(&id).join("config.json"), None);
                let container = config.and_then(|config| config.containerd_name(id));
                container.into_iter().for_each(|container| self.add(container));
            }
        }
    }
}

/// An entry of containers.json (github.com/containers/storage, `Container`).
#[derive(Debug, Deserialize)]
struct StoredContainer {
    id: String,
    #[serde(default)]
    names: Vec<String>,
}

/// The part of an OCI configuration that names the container (opencontainers/runtime-spec, config.md).
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OciConfig {
    annotations: BTreeMap<String, String>,
}

impl OciConfig {
    /// Annotations of CRI-O and of Kubernetes' container runtime interface.
    fn crio_name(mut self, id: String) -> Option<ContainerName> {
        let mut take = |name: &str| self.annotations.remove(name);
        let pod = take("io.kubernetes.pod.name")?;
        let name = match take("io.kubernetes.cri-o.ContainerType").as_deref() {
            Some("sandbox") => "(pod)".to_owned(),
            _ => take("io.kubernetes.container.name")?,
        };
        let (namespace, pod_uid) = (take("io.kubernetes.pod.namespace"), take("io.kubernetes.pod.uid"));
        Some(ContainerName { id, runtime: "crio".into(), name, pod: Some(pod), namespace, pod_uid })
    }

    fn containerd_name(mut self, id: String) -> Option<ContainerName> {
        let mut take = |name: &str| self.annotations.remove(name);
        let Some(pod) = take("io.kubernetes.cri.sandbox-name") else {
            let name = take("nerdctl/name")?;
            return Some(ContainerName { id, runtime: "containerd".into(), name, ..ContainerName::default() });
        };
        let name = match take("io.kubernetes.cri.container-type").as_deref() {
            Some("sandbox") => "(pod)".to_owned(),
            _ => take("io.kubernetes.cri.container-name")?,
        };
        let namespace = take("io.kubernetes.cri.sandbox-namespace");
        let pod_uid = take("io.kubernetes.cri.sandbox-uid");
        Some(ContainerName { id, runtime: "containerd".into(), name, pod: Some(pod), namespace, pod_uid })
    }
}

/// The part of docker's config.v2.json that names the container.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct DockerConfig {
    name: String,
    config: DockerContainerConfig,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct DockerContainerConfig {
    #[serde(deserialize_with = "null_as_empty")]
    labels: BTreeMap<String, String>,
}

fn null_as_empty<'de, D: serde::Deserializer<'de>>(value: D) -> Result<BTreeMap<String, String>, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}

/// `data-root` of `/etc/docker/daemon.json`, else docker's default.
fn docker_data_root(root: &Root) -> PathBuf {
    #[derive(Deserialize)]
    struct Daemon {
        #[serde(rename = "data-root")]
        data_root: PathBuf,
    }
    let daemon: Option<Daemon> = read_json(&root.etc("docker/daemon.json"), None);
    let configured = daemon.as_ref().and_then(|daemon| daemon.data_root.strip_prefix("/").ok());
    root.base().join(configured.unwrap_or(Path::new("var/lib/docker")))
}

/// Homes, relative to `/`, and numbers of the users for whom a runtime directory of containers exists.
fn users_with_containers(root: &Root) -> Vec<(PathBuf, u32)> {
    let runtime_directories = root.run("user");
    let has_containers = |uid: &String| runtime_directories.join(uid).join("containers").is_dir();
    let users: Vec<u32> = subdirectories(&runtime_directories)
        .into_iter()
        .filter(has_containers)
        .filter_map(|uid| uid.parse().ok())
        .take(MAX_USERS)
        .collect();
    if users.is_empty() {
        return Vec::new();
    }
    let passwd = std::fs::read_to_string(root.etc("passwd")).unwrap_or_default();
    let user = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let uid: u32 = fields.get(2)?.parse().ok()?;
        let home = fields.get(5)?.strip_prefix('/')?;
        users.contains(&uid).then(|| (home.into(), uid))
    };
    passwd.lines().filter_map(user).collect()
}

fn subdirectories(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().take(2 * MAX_CONTAINERS).flatten();
    let is_directory = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let mut names: Vec<String> =
        entries.filter(is_directory).filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// The content of a regular file; with `owner`, only of a file of that user, who might have planted a link to another.
/// `None` if there is none or it is something else: then the container keeps its number.
fn read_json<T: serde::de::DeserializeOwned>(path: &Path, owner: Option<u32>) -> Option<T> {
    // Looked at before it is opened: opening a device or a pipe can have effects or wait.
    let file = rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !is_regular || stat.st_size as u64 > MAX_BYTES || owner.is_some_and(|uid| stat.st_uid != uid) {
        return None;
    }
    let link = Root::live().proc(&format!("self/fd/{}", file.as_raw_fd()));
    let file = rustix::fs::openat(CWD, link, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = Vec::new();
    std::fs::File::from(file).take(MAX_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(digit: char) -> String {
        digit.to_string().repeat(64)
    }

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn named(dir: &Path) -> Vec<(String, String, String, Option<String>)> {
        let all = read_container_names(&Root::at(dir));
        all.into_iter()
            .map(|c| (c.id[..1].to_owned(), c.runtime, c.name, c.pod.zip(c.namespace).map(|(p, n)| format!("{n}/{p}"))))
            .collect()
    }

    #[test]
    fn every_runtime_names_its_containers() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        // podman, after a rename: the configuration does not know the new name.
        let list = format!(r#"[{{"id":"{}","names":["shop-db"],"metadata":"{{\"name\":\"web1\"}}"}}]"#, id('a'));
        put(root, "var/lib/containers/storage/overlay-containers/containers.json", &list);
        let config = r#"{"hostname":"vm","annotations":{"io.container.manager":"libpod"}}"#;
        put(root, &format!("var/lib/containers/storage/overlay-containers/{}/userdata/config.json", id('a')), config);
        // CRI-O, whose list has a name made of several.
        let list = format!(r#"[{{"id":"{}","names":["k8s_nginx_web_shop_1_0"]}}]"#, id('b'));
        put(root, "var/lib/containers/storage/overlay-containers/volatile-containers.json", &list);
        let config = r#"{"annotations":{"io.kubernetes.pod.name":"web","io.kubernetes.pod.namespace":"shop",
            "io.kubernetes.container.name":"nginx","io.kubernetes.cri-o.ContainerType":"container"}}"#;
        put(root, &format!("run/containers/storage/overlay-containers/{}/userdata/config.json", id('b')), config);
        // docker, elsewhere than usual, with no labels.
        put(root, "etc/docker/daemon.json", r#"{"data-root":"/srv/docker"}"#);
        let config = r#"{"Name":"/cache","Config":{"Hostname":"vm","Labels":null}}"#;
        put(root, &format!("srv/docker/containers/{}/config.v2.json", id('c')), config);
        // containerd for Kubernetes, and by nerdctl.
        let tasks = "run/containerd/io.containerd.runtime.v2.task";
        let config = r#"{"annotations":{"io.kubernetes.cri.sandbox-name":"db","io.kubernetes.cri.sandbox-namespace":"shop",
            "io.kubernetes.cri.container-type":"sandbox"}}"#;
        put(root, &format!("{tasks}/k8s.io/{}/config.json", id('d')), config);
        let config = r#"{"annotations":{"nerdctl/name":"queue"}}"#;
        put(root, &format!("{tasks}/default/{}/config.json", id('e')), config);
        let of = |id: &str, runtime: &str, name: &str, pod: Option<&str>| {
            (id.to_owned(), runtime.to_owned(), name.to_owned(), pod.map(str::to_owned))
        };
        let want = [
            of("a", "podman", "shop-db", None),
            of("b", "crio", "nginx", Some("shop/web")),
            of("c", "docker", "cache", None),
            of("d", "containerd", "(pod)", Some("shop/db")),
            of("e", "containerd", "queue", None),
        ];
        assert_eq!(named(root), want);
    }

    #[test]
    fn containers_of_users_are_named_from_files_of_those_users_only() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let (me, other) = (rustix::process::getuid().as_raw(), rustix::process::getuid().as_raw() + 1);
        put(root, "etc/passwd", &format!("u:x:{me}:0::/home/u:/bin/sh\nv:x:{other}:0::/home/v:/bin/sh\n"));
        for (user, uid, digit) in [("u", me, 'a'), ("v", other, 'b')] {
            std::fs::create_dir_all(root.join(format!("run/user/{uid}/containers"))).unwrap();
            let list = format!(r#"[{{"id":"{}","names":["of-{user}"]}}]"#, id(digit));
            put(root, &format!("home/{user}/.local/share/containers/storage/vfs-containers/containers.json"), &list);
        }
        // The file of the other user belongs to this one.
        assert_eq!(named(root), [("a".into(), "podman".into(), "of-u".into(), None)]);
    }

    #[test]
    fn damaged_and_special_files_name_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let storage = "var/lib/containers/storage/overlay-containers";
        put(root, &format!("{storage}/containers.json"), "[{\"id\":\"short\",\"names\":[\"x\"]}, 7");
        let list = format!(r#"[{{"id":"short","names":["x"]}},{{"id":"{}","names":[]}}]"#, id('a'));
        put(root, &format!("{storage}/volatile-containers.json"), &list);
        let docker = root.join(format!("var/lib/docker/containers/{}", id('c')));
        std::fs::create_dir_all(&docker).unwrap();
        rustix::fs::mkfifoat(CWD, docker.join("config.v2.json"), Mode::RUSR).unwrap();
        assert_eq!(named(root), []);
    }
}
