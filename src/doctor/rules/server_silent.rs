//! Servers of NFS, SMB and Ceph that do not answer, as the kernel log says (net/sunrpc/clnt.c, fs/smb/client/connect.c,
//! net/ceph/osdmap.c, fs/ceph/mds_client.c). Of NFS and Ceph it also says when they answer again.

use super::hung_tasks::{involved_task, waited_for_server};
use super::kernel_errors::{RECENT_SECS, require_kernel_log};
use super::network_mounts::{MIN_OPS_PER_S, WINDOW_SECS};
use super::prelude::*;
use crate::model::kernel_log::LogEntry;
use crate::model::kernel_log::hung_tasks::HungTask;
use crate::model::network::{NetFsKind, NetFsRaw};

/// As far back as the log goes: who waits for a server may do so for ever.
const LOG_SECS: u64 = 30 * 86_400;
/// After so long without a task that waits, the message says nothing any more: who waited was killed, maybe.
const IDLE_SECS: f64 = 86_400.0;
/// Servers that are judged at most, those of the newest messages.
const MAX_SERVERS: usize = 100;
const MAX_NAMED_TASKS: usize = 4;
const MAX_NAMED_MOUNTS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerProtocol {
    Nfs,
    Smb,
    Ceph,
}

impl ServerProtocol {
    fn name(self) -> &'static str {
        match self {
            Self::Nfs => "NFS",
            Self::Smb => "SMB",
            Self::Ceph => "Ceph",
        }
    }

    /// Kind of its mounts; `None` where they are not counted.
    fn mount_kind(self) -> Option<NetFsKind> {
        match self {
            Self::Nfs => Some(NetFsKind::Nfs),
            Self::Smb => Some(NetFsKind::Cifs),
            Self::Ceph => None,
        }
    }

    /// How the kernel functions begin in which tasks wait for a server.
    fn wait_functions(self) -> &'static [&'static str] {
        match self {
            Self::Nfs => &["rpc_", "nfs_", "nfs4_"],
            Self::Smb => &["cifs_", "smb2_", "wait_for_response"],
            Self::Ceph => &["ceph_", "rbd_"],
        }
    }
}

/// What a message says of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerState {
    /// Calls wait until it answers, and then there is a message.
    Waiting,
    /// Calls fail or the connection is made again, and no message says that it worked.
    Failing,
    Answering,
}

/// The server that a message is about, and what it says.
fn parse(message: &str) -> Option<(ServerProtocol, &str, ServerState)> {
    use ServerState::{Answering, Failing, Waiting};
    let message = message.trim_end();
    if let Some(rest) = message.strip_prefix("nfs: server ").or_else(|| message.strip_prefix("lockd: server ")) {
        let endings =
            [(" not responding, still trying", Waiting), (" not responding, timed out", Failing), (" OK", Answering)];
        let found = endings.into_iter().find_map(|(ending, state)| Some((rest.strip_suffix(ending)?, state)));
        return found.map(|(name, state)| (ServerProtocol::Nfs, name, state));
    }
    if message.starts_with("CIFS") {
        // `CIFS: VFS: \\nas has not responded in 180 seconds. Reconnecting...`, formerly `CIFS VFS: Server nas has ...`.
        let name = message.split_once(" has not responded in ")?.0.rsplit([' ', '\\']).next()?;
        return Some((ServerProtocol::Smb, name, Failing));
    }
    if message.starts_with("libceph: ") || message.starts_with("ceph: ") {
        // Another server takes over what one that is down had; the one that knows a directory hangs until it is back.
        let endings = [(" down", Failing), (" hung", Waiting), (" up", Answering), (" came back", Answering)];
        let found = endings.into_iter().find_map(|(ending, state)| Some((message.strip_suffix(ending)?, state)));
        let (rest, state) = found?;
        let name = rest.rsplit(' ').next()?;
        let is_daemon = ["osd", "mds", "mon"].iter().any(|kind| name.starts_with(kind));
        return is_daemon.then_some((ServerProtocol::Ceph, name, state));
    }
    None
}

/// The host of `server:/export`, `[fe80::1]:/export`, `//server/share` and `\\server\share`.
fn host_of(server: &str) -> &str {
    let share = server.trim_start_matches(['/', '\\']);
    let host = match server.split_once(":/") {
        Some((host, _)) if share == server => host,
        _ => share.split(['/', '\\']).next().unwrap_or(share),
    };
    host.trim_start_matches('[').trim_end_matches(']')
}

/// The newest message about a server.
struct ServerReport<'a> {
    protocol: ServerProtocol,
    /// As the kernel names it, raw.
    name: &'a str,
    state: ServerState,
    newest: &'a LogEntry,
    /// Wall clock of the first of these messages since it last answered, ns.
    since_wall_ns: i64,
    /// Whether older messages are about another time.
    is_complete: bool,
}

/// What the log says last of each server.
fn newest_reports<'a>(ctx: &RuleContext<'a>) -> Vec<ServerReport<'a>> {
    let mut out: Vec<ServerReport<'a>> = Vec::new();
    for entry in ctx.kernel_messages(KernelLogClass::NetworkFs, LOG_SECS) {
        let Some((protocol, name, state)) = parse(&entry.message) else { continue };
        match out.iter().position(|server| server.protocol == protocol && server.is_named(name)) {
            Some(at) => out[at].add_older(entry, state),
            None if out.len() < MAX_SERVERS => {
                let since_wall_ns = entry.first_wall_ns;
                out.push(ServerReport { protocol, name, state, newest: entry, since_wall_ns, is_complete: false });
            }
            None => {}
        }
    }
    out
}

impl ServerReport<'_> {
    fn is_named(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    fn add_older(&mut self, entry: &LogEntry, state: ServerState) {
        if self.is_complete {
            return;
        }
        self.is_complete = state == ServerState::Answering;
        // Equal messages before and after the answer are one entry of the log.
        self.since_wall_ns = match self.is_complete {
            true => self.since_wall_ns.max(entry.wall_ns),
            false => self.since_wall_ns.min(entry.first_wall_ns),
        };
    }

    /// Seconds since the newest message.
    fn age_secs(&self, ctx: &RuleContext<'_>) -> f64 {
        ctx.secs_since(ctx.wall_to_boot_ns(self.newest.wall_ns))
    }

    /// Its mounts that are older than the message; `None` where mounts are not known.
    fn mounts<'a>(&self, ctx: &RuleContext<'a>) -> Option<Vec<&'a NetFsRaw>> {
        let kind = self.protocol.mount_kind()?;
        let all = ctx.system.last_sample.as_ref()?.netfs.ok()?;
        let age_secs = self.age_secs(ctx);
        let is_of_server = |mount: &&NetFsRaw| {
            let server = String::from_utf8_lossy(mount.server.as_bytes());
            let is_older = mount.age_s.is_none_or(|age| age as f64 >= age_secs);
            mount.kind == kind && is_older && self.is_named(host_of(&server))
        };
        Some(all.iter().filter(is_of_server).collect())
    }

    /// Whether calls to it completed in the last seconds. How long they take is for `network-slow` to judge.
    fn answers_calls(&self, ctx: &RuleContext<'_>) -> bool {
        let Some(kind) = self.protocol.mount_kind() else { return false };
        let calls = ctx.mean(WINDOW_SECS, |tick| {
            let mounts = tick.netfs.ok()?.iter().filter(|m| m.kind == kind && self.is_named(host_of(&m.server)));
            Some(mounts.filter_map(|mount| mount.ops_per_s).sum())
        });
        calls.is_some_and(|per_s| per_s >= MIN_OPS_PER_S)
    }

    /// Programs that hang on a file of the server, or, if their file is not known, in a function for such servers.
    fn waiting_tasks<'a>(&self, ctx: &RuleContext<'a>) -> Vec<&'a HungTask> {
        let waits = |task: &&HungTask| match waited_for_server(ctx, task) {
            Some((_, server)) => self.is_named(host_of(&server)),
            None => {
                let function = task.wchan.as_deref().unwrap_or_default();
                self.protocol.wait_functions().iter().any(|start| function.starts_with(start))
            }
        };
        let is_program = |task: &&HungTask| {
            let row = ctx.system.processes.row_or_process(&task.key);
            row.is_none_or(|row| !row.raw.kernel_thread)
        };
        ctx.system.hung_tasks.iter().filter(waits).filter(is_program).collect()
    }

    /// Whether it still does not answer, as far as that is known.
    fn is_silent(&self, ctx: &RuleContext<'_>, has_tasks: bool) -> bool {
        let is_mounted = self.mounts(ctx).is_none_or(|mounts| !mounts.is_empty());
        let recent = RECENT_SECS as f64;
        let limit_secs = match (self.state, has_tasks, is_mounted) {
            (ServerState::Answering, ..) | (_, false, false) => return false,
            (_, true, true) => f64::INFINITY,
            // Containers have mounts that are not seen here.
            (_, true, false) | (ServerState::Failing, false, true) => recent,
            (ServerState::Waiting, false, true) => IDLE_SECS,
        };
        self.age_secs(ctx) <= limit_secs && !self.answers_calls(ctx)
    }
}

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    for server in newest_reports(ctx) {
        let tasks = server.waiting_tasks(ctx);
        if server.is_silent(ctx, !tasks.is_empty()) {
            out.push(silent_server_finding(ctx, &server, &tasks));
        }
    }
    require_kernel_log(ctx)
}

fn silent_server_finding(ctx: &RuleContext<'_>, server: &ServerReport<'_>, tasks: &[&HungTask]) -> Finding {
    let (name, message) = (sanitize(server.name), sanitize(&server.newest.message));
    let waiting = match tasks.len() {
        0 => String::new(),
        1 => ", 1 task waits for it".into(),
        n => format!(", {n} tasks wait for it"),
    };
    let title = format!("the {} server {name} does not answer{waiting}: {message}", server.protocol.name());
    let mounts = server.mounts(ctx).unwrap_or_default();
    let points: Vec<String> = mounts.iter().take(MAX_NAMED_MOUNTS).map(|mount| mount.mount.sanitized()).collect();
    let newest_ns = ctx.wall_to_boot_ns(server.newest.wall_ns);
    let severity = Severity::critical_if(!tasks.is_empty());
    let finding = Finding::new(severity, FindingSubject::KernelName(name), title)
        .fact_opt("mounted on", (!points.is_empty()).then(|| points.join(", ")))
        .fact("newest", format!("{} ago: {message}", format::duration(ctx.secs_since(newest_ns))))
        .fact("tasks that hang", tasks.len().to_string())
        .since(ctx.wall_to_boot_ns(server.since_wall_ns))
        .delays(tasks.iter().take(MAX_NAMED_TASKS).map(|task| involved_task(ctx, task)))
        .see_also(NavTarget::KernelLog(server.newest.seq));
    let is_past = server.state == ServerState::Failing && tasks.is_empty();
    advise_silent_server(if is_past { finding.last_seen(newest_ns) } else { finding })
}

fn advise_silent_server(finding: Finding) -> Finding {
    finding
        .why(
            "Programs that use its files wait in the kernel until it answers. Mounted with `hard`, the default of NFS, \
             they wait for ever, and nothing is lost; with `soft`, the default of SMB, their calls fail after a while, \
             and what was not written yet may be lost.",
        )
        .advise("check the way to it: ping, the link, the route, a firewall")
        .advise(
            "then the server: whether it runs, its service (nfsd, smbd, ceph-osd, ceph-mds) and its disks. When it \
             answers again, everything that waits goes on by itself",
        )
        .advise(
            "end a program that waits with kill -9: no other signal does, and the mount option intr has had no effect \
             since Linux 2.6.25",
        )
        .costs("what it has not written yet")
        .advise(
            "for programs that handle errors, mount with soft and a timeo that suits them: calls then fail instead of \
             waiting",
        )
        .costs("a new mount; a write that fails may be lost unnoticed")
        .advise("as the last resort, umount -f -l: all calls that wait fail, and the mount is taken out of the tree")
        .costs("unwritten data of all programs there; those with open files keep the old mount until they end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_which_server_and_whether_it_answers() {
        use ServerProtocol::{Ceph, Nfs, Smb};
        use ServerState::{Answering, Failing, Waiting};
        for (message, expected) in [
            ("nfs: server nas not responding, still trying", Some((Nfs, "nas", Waiting))),
            ("nfs: server fe80::1 not responding, timed out", Some((Nfs, "fe80::1", Failing))),
            ("lockd: server nas OK", Some((Nfs, "nas", Answering))),
            (r"CIFS: VFS: \\nas has not responded in 180 seconds. Reconnecting...", Some((Smb, "nas", Failing))),
            ("CIFS VFS: Server srv has not responded in 120 seconds. Reconnecting...", Some((Smb, "srv", Failing))),
            ("libceph: osd3 down", Some((Ceph, "osd3", Failing))),
            ("libceph: osd3 up", Some((Ceph, "osd3", Answering))),
            ("ceph: [0ac8f9 4123]: mds0 hung", Some((Ceph, "mds0", Waiting))),
            ("ceph: mds0 came back", Some((Ceph, "mds0", Answering))),
            ("libceph: mon0 (1)10.0.0.1:6789 session lost, hunting for new mon", None),
            ("CIFS: VFS: cifs_mount failed w/return code = -2", None),
            ("NFS: state manager: check lease failed", None),
        ] {
            assert_eq!(parse(message), expected, "{message}");
        }
    }

    #[test]
    fn the_host_of_a_mount_is_the_name_that_the_kernel_has_for_it() {
        for (server, host) in [
            ("nas:/export/a", "nas"),
            ("[fe80::1]:/export", "fe80::1"),
            ("10.0.0.2:/", "10.0.0.2"),
            ("//nas/share", "nas"),
            (r"\\nas\old share", "nas"),
            ("//nas/c:/d", "nas"),
        ] {
            assert_eq!(host_of(server), host);
        }
    }
}
