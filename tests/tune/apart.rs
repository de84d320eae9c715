//! The running machine with a /run of the test's own, in a mount namespace: for knobs that exist on the live root
//! only.

use crate::machine::LiveMachine;
use std::io::Read;
use std::process::{Child, Command, Stdio};

/// A process in its own mount namespace, killed when dropped.
pub struct MountNamespace(Child);

impl MountNamespace {
    /// Makes `m` run the program there. Prints why and returns `None` where there are no mount namespaces.
    pub fn enter(m: &mut LiveMachine, test: &str) -> Option<Self> {
        let bind = "mount --make-rprivate / && mount --bind \"$0\" /run && echo there && exec sleep 600";
        let child = Command::new("unshare")
            .args(["--mount", "sh", "-c", bind])
            .arg(m.dir.path().join("run"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let there = child.ok().map(Self).and_then(|mut apart| {
            let mut said = [0; 6];
            apart.0.stdout.take()?.read_exact(&mut said).ok().map(|()| apart)
        });
        let Some(apart) = there else {
            eprintln!("SKIPPED {test}: no mount namespace (unshare --mount)");
            return None;
        };
        let namespace = format!("--mount=/proc/{}/ns/mnt", apart.0.id());
        m.wrapper = ["nsenter", &namespace, "--"].map(str::to_owned).into();
        Some(apart)
    }

    /// The mounts in the namespace.
    pub fn mountinfo(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(format!("/proc/{}/mountinfo", self.0.id())).unwrap()).into_owned()
    }
}

impl Drop for MountNamespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
