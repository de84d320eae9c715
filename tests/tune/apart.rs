//! The running machine with directories of the test's own, in a mount namespace: for what exists on the live root only.

use crate::machine::LiveMachine;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A process in its own mount namespace, killed when dropped.
pub struct MountNamespace(Child);

impl MountNamespace {
    /// Makes `m` run the program there. Prints why and returns `None` where there are no mount namespaces.
    pub fn enter(m: &mut LiveMachine, test: &str) -> Option<Self> {
        let run = m.dir.path().join("run");
        Self::enter_with(m, test, &[(&run, "/run")])
    }

    /// The same with these directories in place of others.
    pub fn enter_with(m: &mut LiveMachine, test: &str, binds: &[(&Path, &str)]) -> Option<Self> {
        let mut script = String::from("mount --make-rprivate /");
        for (from, to) in binds {
            script.push_str(&format!(" && mount --bind '{}' {to}", from.display()));
        }
        script.push_str(" && echo there && exec sleep 600");
        let child = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
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
