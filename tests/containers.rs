//! Names of containers against `podman ps`. Needs root and podman; skipped by name elsewhere.

use std::collections::BTreeMap;
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

/// The container of each process according to the program.
fn listed_by_us() -> BTreeMap<u64, String> {
    let arguments = ["snapshot", "-d", "0.2", "--pane", "processes", "--format", "json"];
    let out = Command::new(env!("CARGO_BIN_EXE_iotop-plus")).args(arguments).output().unwrap();
    let snapshot: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let name = |container: &serde_json::Value| {
        Some(format!("{}:{}", container["runtime"].as_str()?, container["name"].as_str()?))
    };
    let task = |task: &serde_json::Value| Some((task["pid"].as_u64()?, name(&task["container"])?));
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
    let got = listed_by_us();
    for (pid, name) in &want {
        assert_eq!(got.get(pid), Some(&format!("podman:{name}")), "process {pid}");
    }
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
