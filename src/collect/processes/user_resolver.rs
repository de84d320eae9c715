//! Names of users that are not in `/etc/passwd`, such as those of LDAP or SSSD. A child asks the system's resolver, by
//! getent(1), because that may wait for servers, and because a static program cannot load the C library's modules.

use super::passwd::{Names, SUBCOMMAND, parse_passwd};
use crate::root::Root;
use crate::subprocess::budget::{ChildBudget, ChildSlot};
use crate::subprocess::child;
use crate::subprocess::request::RequestChild;
use crate::subprocess::system_program::output_of;
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

/// Where getent(1) is.
const PROGRAM: &str = "/usr/bin/getent";

/// Users asked for at once.
const MAX_USERS: usize = 64;

/// The main function of the child: replies to numbers of users with the names of those that are known.
///
/// # Errors
/// If the parent is gone.
pub(crate) fn run_child_process() -> anyhow::Result<()> {
    child::enter(SUBCOMMAND);
    child::serve_requests(|users: serde_json::Result<Vec<u32>>| Ok(ask(Path::new(PROGRAM), &users?)))
}

/// The names that `program` prints as lines of a passwd file; none without the program.
fn ask(program: &Path, users: &[u32]) -> Names {
    let arguments: Vec<String> = std::iter::once("passwd".into()).chain(users.iter().map(u32::to_string)).collect();
    let mut names = output_of(program, &arguments).map_or_else(|_| Names::default(), |text| parse_passwd(&text));
    names.retain(|user, _| users.contains(user));
    names
}

/// Asks for each user once.
#[derive(Default)]
pub(super) struct UserResolver {
    asked: HashSet<u32>,
    running: Option<(RequestChild, ChildSlot)>,
}

impl UserResolver {
    /// The names that have arrived, if any; asks for users that were not asked for, unless a child has not answered yet.
    pub(super) fn poll(&mut self, root: &Root, unknown: impl Iterator<Item = u32>) -> Names {
        if let Some((child, _)) = &self.running
            && !child.wait_for_reply(Duration::ZERO)
        {
            return Names::default();
        }
        let names = self.running.take().map_or_else(Names::default, |(mut child, _)| {
            let names = child.read_reply().ok().flatten().unwrap_or_default();
            let _ = child.finish();
            names
        });
        let users: Vec<u32> = unknown.filter(|user| !self.asked.contains(user)).take(MAX_USERS).collect();
        if !users.is_empty()
            && let Some(slot) = ChildBudget::shared().acquire()
            && let Ok(mut child) = RequestChild::start(Root::self_exe(), root, &[SUBCOMMAND, "--resolve"])
            && child.send([&users]).is_ok()
        {
            self.asked.extend(users);
            self.running = Some((child, slot));
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_program_is_asked_for_all_users_and_only_they_are_taken() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("getent");
        let script = "#!/bin/sh\necho \"$*\" >\"$0.asked\"\necho 'ann@corp:*:70001:9:Ann:/home/ann:/bin/sh'\n\
                      echo 'other:*:5:9::/:'\nexit 2\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(ask(&program, &[70001, 70002]), Names::from([(70001, "ann@corp".into())]));
        assert_eq!(std::fs::read_to_string(dir.path().join("getent.asked")).unwrap(), "passwd 70001 70002\n");
        assert_eq!(ask(&dir.path().join("missing"), &[1]), Names::new());
    }
}
