//! Names of containers against `podman ps`. Needs root and podman; skipped by name elsewhere.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

/// Containers that run at once, in all the ways below.
const CONTAINERS: usize = 30;

fn podman(arguments: &[&str]) -> Output {
    Command::new("podman").args(arguments).output().expect("podman starts")
}

/// How the containers are made on this machine: cgroups without systemd, and the first OCI runtime that can.
fn working_runtime() -> Result<&'static str, String> {
    let mut why = String::from("no OCI runtime");
    for runtime in ["crun", "runc"] {
        let out = run(runtime, "iotop-plus-probe", "none", &["true"]);
        let text = String::from_utf8_lossy(&out.stderr).trim().to_owned();
        podman(&["rm", "-f", "iotop-plus-probe"]);
        if out.status.success() {
            return Ok(runtime);
        }
        why = text;
    }
    Err(why)
}

fn run(runtime: &str, name: &str, network: &str, command: &[&str]) -> Output {
    let mut arguments = vec!["--runtime", runtime, "--cgroup-manager=cgroupfs", "run", "-d", "--name", name];
    let network = format!("--net={network}");
    // The limits of this shell may exceed those of the test's user.
    arguments.extend(["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000", &network, "--rootfs", "/:O"]);
    arguments.extend(command);
    podman(&arguments)
}

/// Removes what a test made, also if it fails.
struct Containers {
    prefix: String,
}

impl Drop for Containers {
    fn drop(&mut self) {
        podman(&["rm", "-f", "--time=0", "--filter", &format!("name=^{}", self.prefix)]);
    }
}

/// Name of each running container by the process ID of its first process.
fn listed_by_podman(prefix: &str) -> BTreeMap<u64, String> {
    let filter = format!("name=^{prefix}");
    let out = podman(&["ps", "--filter", &filter, "--format", "{{.Pid}} {{.Names}}"]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(pid, name)| (pid.parse().unwrap(), name.into()))
        .collect()
}

/// Moves a process into a control group below its own, named as podman names that of a container.
fn move_to_nested_container(pid: u64) {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let mut is_moved = false;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next().unwrap(), fields.next().unwrap());
        for top in
            ["/sys/fs/cgroup/".to_owned(), "/sys/fs/cgroup/unified/".into(), format!("/sys/fs/cgroup/{controllers}/")]
        {
            let group = format!("{top}{path}");
            if path != "/" && Path::new(&group).join("cgroup.procs").exists() {
                let nested = format!("{group}/libpod_parent/libpod-{}", "9a".repeat(32));
                std::fs::create_dir_all(&nested).unwrap();
                // A new group of the version 1 controller cpuset has no processors and takes no process.
                is_moved |= std::fs::write(format!("{nested}/cgroup.procs"), pid.to_string()).is_ok();
            }
        }
    }
    assert!(is_moved, "{groups}");
}

/// The container and control group of each process according to the program.
fn listed_by_us() -> BTreeMap<u64, (String, String)> {
    let arguments = ["snapshot", "-d", "0.2", "--pane", "processes", "--format", "json"];
    let out = Command::new(env!("CARGO_BIN_EXE_iotop-plus")).args(arguments).output().unwrap();
    let snapshot: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let name = |container: &serde_json::Value| {
        Some(format!("{}:{}", container["runtime"].as_str()?, container["name"].as_str()?))
    };
    let task = |task: &serde_json::Value| {
        Some((task["pid"].as_u64()?, (name(&task["container"])?, task["cgroup"].as_str()?.to_owned())))
    };
    snapshot["processes"].as_array().unwrap().iter().filter_map(task).collect()
}

#[test]
fn containers_have_the_names_that_podman_gives_them() {
    if !rustix::process::geteuid().is_root() || Command::new("podman").arg("--version").output().is_err() {
        println!("skipped containers_have_the_names_that_podman_gives_them: needs root and podman");
        return;
    }
    let runtime = match working_runtime() {
        Ok(runtime) => runtime,
        Err(why) => {
            println!("skipped containers_have_the_names_that_podman_gives_them: podman runs nothing here: {why}");
            return;
        }
    };
    let prefix = format!("iotop-plus-{}-", std::process::id());
    let made = Containers { prefix: prefix.clone() };
    for n in 0..CONTAINERS {
        // With the host's network the host name is that of the host.
        let network = if n % 3 == 0 { "host" } else { "none" };
        let out = run(runtime, &format!("{prefix}{n}"), network, &["sleep", "1000"]);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }
    for n in [1, 2, 3] {
        assert!(podman(&["rename", &format!("{prefix}{n}"), &format!("{prefix}renamed-{n}")]).status.success());
    }
    for n in [4, 5] {
        podman(&["stop", "--time=0", &format!("{prefix}{n}")]);
    }
    let want = listed_by_podman(&made.prefix);
    assert_eq!(want.len(), CONTAINERS - 2);
    // A container of a podman in the container: its state files are in there, so it is called by the outer one.
    let nested: Vec<u64> = want.keys().take(3).copied().collect();
    nested.iter().for_each(|pid| move_to_nested_container(*pid));
    let got = listed_by_us();
    for (pid, name) in &want {
        let (ours, group) = got.get(pid).unwrap_or_else(|| panic!("process {pid} is in no container"));
        assert_eq!(*ours, format!("podman:{name}"), "process {pid}");
        assert_eq!(group.ends_with(&"9a".repeat(32)), nested.contains(pid), "{group}");
    }
}

/// Writes a file of a made tree.
fn put(tree: &Path, file: &str, text: &str) {
    let file = tree.join(file);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// Writes the process of a container of `shop/pod-N`, whose unique ID is `0a1b-N`, with containerd's state file of it.
fn put_pod(tree: &Path, n: usize) {
    let (pid, id) = (100 + n, ["a", "b", "c", "d"][n].repeat(64));
    let file = |name: &str, text: &str| put(tree, &format!("proc/{pid}/{name}"), text);
    file(
        "stat",
        &format!("{pid} (app) S 1 {pid} {pid} 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 50 1000 100 0 {}\n", "0 ".repeat(27)),
    );
    file("status", "Name:\tapp\nUid:\t0\t0\t0\t0\nVmSwap:\t0 kB\n");
    file("io", "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 0\n");
    file("schedstat", "1000 0 5\n");
    file("cmdline", "app\0");
    file("cgroup", &format!("0::/kubepods.slice/kubepods-pod0a1b_{n}.slice/cri-containerd-{id}.scope\n"));
    let config = serde_json::json!({ "annotations": {
        "io.kubernetes.cri.sandbox-name": format!("pod-{n}"), "io.kubernetes.cri.sandbox-namespace": "shop",
        "io.kubernetes.cri.sandbox-uid": format!("0a1b-{n}"), "io.kubernetes.cri.container-type": "container",
        "io.kubernetes.cri.container-name": "app",
    } });
    let state = "run/containerd/io.containerd.runtime.v2.task/k8s.io";
    put(tree, &format!("{state}/{id}/config.json"), &config.to_string());
}

/// Volumes as kubelet mounts them: of a container storage interface, local, and block devices, whose node is mounted.
#[test]
fn devices_are_called_by_the_volumes_that_kubelet_made_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path();
    (0..4).for_each(|n| put_pod(tree, n));
    put(tree, "proc/loadavg", "0 0 0 1/1 103\n");
    let csi = "/var/lib/kubelet/plugins/kubernetes.io/csi";
    let pods = "/var/lib/kubelet/pods";
    let mounts = [
        "8:0 / / - ext4 /dev/sda".to_owned(),
        "0:5 / /dev - devtmpfs devtmpfs".to_owned(),
        format!("8:16 / {csi}/driver/77/globalmount - xfs /dev/sdb"),
        format!("8:16 / {pods}/0a1b-0/volumes/kubernetes.io~csi/pvc-1/mount - xfs /dev/sdb"),
        format!("0:5 /sdc {csi}/volumeDevices/staging/pvc-2 - devtmpfs devtmpfs"),
        format!("0:5 /sdc {csi}/volumeDevices/publish/pvc-2/0a1b-1 - devtmpfs devtmpfs"),
        "8:48 / /mnt/disks/d1 - ext4 /dev/sdd".to_owned(),
        format!("8:48 / {pods}/0a1b-2/volumes/kubernetes.io~local-volume/disk-1 - ext4 /dev/sdd"),
        "0:5 /sde /var/lib/kubelet/plugins/kubernetes.io/local-volume/volumeDevices/disk-2/0a1b-3 - devtmpfs devtmpfs"
            .into(),
        format!("8:80 / {pods}/0a1b-9/volumes/kubernetes.io~csi/pvc-3/mount - ext4 /dev/sdf"),
    ];
    let line =
        |(n, mount): (usize, &String)| format!("{} {} {} rw\n", n + 60, n.min(1) * 60, mount.replace(" - ", " rw - "));
    put(tree, "proc/self/mountinfo", &mounts.iter().enumerate().map(line).collect::<String>());
    let disks = ["sda", "sdb", "sdc", "sdd", "sde", "sdf"];
    let counters = |(n, disk): (usize, &&str)| format!("8 {} {disk} 1 0 8 1 1 0 8 1 0 1 1 0 0 0 0 0 0\n", n * 16);
    put(tree, "proc/diskstats", &disks.iter().enumerate().map(counters).collect::<String>());
    for (n, disk) in disks.iter().enumerate() {
        put(tree, &format!("sys/block/{disk}/dev"), &format!("8:{}\n", n * 16));
        put(tree, &format!("sys/block/{disk}/size"), "2097152\n");
    }
    let out = Command::new(env!("CARGO_BIN_EXE_iotop-plus"))
        .arg("--root")
        .arg(tree)
        .args(["snapshot", "-d", "0.5", "--pane", "devices", "--pane", "processes"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    for want in [
        "sda  / (ext4) ",
        "sdb  pvc-1 of shop/pod-0 (xfs) +1 ",
        "sdc  pvc-2 of shop/pod-1 (block volume) +1 ",
        // The disk is also mounted elsewhere, by its admin.
        "sdd  /mnt/disks/d1 (ext4) +1 ",
        "sde  disk-2 of shop/pod-3 (block volume) ",
        // No container of this pod is known.
        "sdf  pvc-3 of pod 0a1b-9 (ext4) ",
    ] {
        assert!(text.contains(want), "{want}: {text}");
    }
}

/// Runs the program in a mount namespace in which `/etc` is empty and the whole tree is mounted below a directory, as it is
/// in a container that was given the host's root directory.
fn run_below_host_root(arguments: &[&str]) -> Option<Output> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: needs root");
        return None;
    }
    let host = tempfile::tempdir().unwrap();
    let script = r#"mount --rbind / "$1" && mount -t tmpfs tmpfs /etc && program=$2 && host=$1 && shift 2 && exec "$program" --root "$host" "$@""#;
    let out = Command::new("unshare")
        .args(["-m", "sh", "-c", script, "sh"])
        .arg(host.path())
        .arg(env!("CARGO_BIN_EXE_iotop-plus"))
        .args(arguments)
        .output()
        .unwrap();
    Some(out)
}

#[test]
fn the_hosts_root_directory_gives_the_hosts_mounts_users_and_tracing() {
    let Some(out) = run_below_host_root(&["snapshot", "-d", "0.5", "--format", "json"]) else { return };
    let snapshot: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let processes = snapshot["processes"].as_array().unwrap();
    let first = processes.iter().find(|task| task["pid"] == 1).expect("the host's first process");
    assert_eq!(first["user"], "root");
    let devices = snapshot["devices"].as_array().unwrap();
    let points: Vec<&str> = devices
        .iter()
        .flat_map(|device| device["mounts"].as_array().into_iter().flatten())
        .filter_map(|m| m.as_str())
        .collect();
    assert!(points.iter().all(|point| !point.starts_with("/tmp/.tmp")), "{points:?}");
    // Whatever tracing lacks on this machine, it is not the machine.
    assert!(!String::from_utf8_lossy(&out.stdout).contains("captured tree"));
}

#[test]
fn a_lease_is_refused_where_it_would_end_with_its_container() {
    let Some(out) = run_below_host_root(&["tune", "set", "vm.dirty_expire_centisecs=3001", "--for", "10s"]) else {
        return;
    };
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(said.contains("a lease cannot be held in a container"), "{said}");
    assert_eq!(out.status.code(), Some(3));
}

/// Users of LDAP or SSSD are asked of the system's resolver, by a child.
#[test]
fn a_child_asks_the_systems_resolver_for_users() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_iotop-plus"))
        .args(["user-names", "--resolve"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"[0,4000000000]\n").unwrap();
    let out = child.wait_with_output().unwrap();
    if !std::path::Path::new("/usr/bin/getent").exists() {
        println!("skipped: needs getent");
        return;
    }
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), r#"{"0":"root"}"#);
}
