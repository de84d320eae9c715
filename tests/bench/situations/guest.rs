//! Situations in a guest of tests/kernels/boot: this program runs there as well, and answers with a line of JSON for each.

use crate::judge::{Scene, Score, Truth};
use crate::list::Situation;
use crate::program::{self, BINARY_ENV};
use crate::run::{self, Judged, Outcome};
use crate::stage::run as run_program;
use crate::{interrupt, list};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Set in a guest, which nobody else uses.
const GUEST_ENV: &str = "IOTOP_PLUS_SITUATIONS_GUEST";
/// The kernel, as `tests/kernels/boot` names it; another one may be chosen.
const KERNEL: &str = "6.12";
const KERNEL_ENV: &str = "IOTOP_PLUS_SITUATIONS_KERNEL";
/// Situations of one boot: few enough that a guest which dies takes few with it.
const PER_BOOT: usize = 5;
/// Limit of a boot with that many, s.
const BOOT_SECS: &str = "290";
/// Begins each answer.
const ANSWER: &str = "ANSWER ";

/// What a guest answers.
#[derive(Serialize, Deserialize)]
struct Answer {
    name: String,
    result: Result<(Truth, Scene, Score), String>,
}

/// Whether this is a guest.
pub fn is_here() -> bool {
    std::env::var_os(GUEST_ENV).is_some()
}

/// Runs situations in the guest and prints the answers. Recordings go to /out.
pub fn answer(wanted: &[&'static Situation]) {
    for module in ["fuse", "loop"] {
        let _ = run_program("modprobe", &[module]);
    }
    let before = run::before();
    for situation in wanted {
        let judged = run::one(situation, &before, Some(Path::new("/out")));
        let result = judged.map(|judged| (judged.truth, judged.scene, judged.score));
        let answer = Answer { name: situation.name.to_owned(), result };
        println!("{ANSWER}{}", serde_json::to_string(&answer).expect("an answer in JSON"));
    }
}

/// Runs situations in guests, a few in each. Their recordings are brought to `raw`.
pub fn run(wanted: &[&'static Situation], raw: Option<&Path>) -> Vec<Outcome> {
    let share_boot = |a: &&Situation, b: &&Situation| {
        !list::is_booted_alone(a) && !list::is_booted_alone(b) && !list::ends_its_boot(a)
    };
    let parts = wanted.chunk_by(|a, b| share_boot(a, b));
    let boots = parts.flat_map(|part| part.chunks(PER_BOOT)).take_while(|_| !interrupt::is_over());
    boots.flat_map(|part| run_boot(part, raw)).collect()
}

fn run_boot(wanted: &[&'static Situation], raw: Option<&Path>) -> Vec<Outcome> {
    let skip_all = |why: &str| wanted.iter().map(|s| Outcome::new(s, Err(why.to_owned()))).collect();
    let boot = match boot(wanted, raw) {
        Ok(boot) => boot,
        Err(why) => return skip_all(&why),
    };
    let text = String::from_utf8_lossy(&boot.stdout);
    let answers = text.lines().filter_map(|line| serde_json::from_str::<Answer>(line.strip_prefix(ANSWER)?).ok());
    let mut out: Vec<Outcome> = answers.filter_map(outcome_of).collect();
    let why = reason(&String::from_utf8_lossy(&boot.stderr));
    let is_answered = |situation: &&&Situation| out.iter().any(|outcome| outcome.situation.name == situation.name);
    let lost: Vec<&'static Situation> = wanted.iter().filter(|s| !is_answered(s)).copied().collect();
    out.extend(lost.into_iter().map(|s| Outcome::new(s, Err(format!("the guest: {why}")))));
    out
}

/// Why a guest ended early, from the end of its console.
fn reason(console: &str) -> String {
    let says = |line: &&str| ["Kernel panic", "BUG:", "RIP:"].iter().any(|word| line.contains(word));
    let said: Vec<&str> = console.lines().filter(says).collect();
    if said.is_empty() { console.lines().last().unwrap_or("no answer").to_owned() } else { said.join("; ") }
}

fn outcome_of(answer: Answer) -> Option<Outcome> {
    let situation = list::all().find(|situation| situation.name == answer.name)?;
    let judged = answer.result.map(|(truth, scene, score)| Judged { truth, scene, score });
    Some(Outcome::new(situation, judged))
}

/// Copies a program without its symbols, which the guest would have to hold in memory.
fn copy_stripped(from: &Path, to: &Path) -> Result<(), String> {
    let (source, target) = (from.to_string_lossy(), to.to_string_lossy());
    let stripped = run_program("strip", &["-o", &target, &source]);
    stripped.or_else(|_| run_program("cp", &[&source, &target])).map(drop)
}

fn boot(wanted: &[&'static Situation], raw: Option<&Path>) -> Result<std::process::Output, String> {
    run_program("qemu-system-x86_64", &["--version"])?;
    let dir = tempfile::tempdir().map_err(|err| err.to_string())?;
    let [judge, judged, disk] = ["situations", "judged", "paths.img"].map(|name| dir.path().join(name));
    copy_stripped(&std::env::current_exe().map_err(|err| err.to_string())?, &judge)?;
    copy_stripped(&PathBuf::from(program::path()), &judged)?;
    run_program("truncate", &["-s", "200M", &disk.to_string_lossy()])?;
    // Names of others may contain a name: the guest takes whole names only if no other one does.
    let names: Vec<&str> = wanted.iter().map(|situation| situation.name).collect();
    let script = format!("{GUEST_ENV}=1 {BINARY_ENV}=/usr/bin/iotop-plus /pay/situations {}", names.join(" "));
    let path = |file: &Path, id: &str| {
        let file = file.display();
        format!(
            "-drive file={file},format=raw,if=none,id={id},file.locking=off -device scsi-hd,drive={id},bus=sc.0,serial=twice,share-rw=on "
        )
    };
    let disks = format!("-device virtio-scsi-pci,id=sc {}{}", path(&disk, "m1"), path(&disk, "m2"));
    let out = dir.path().join("out");
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels/boot"));
    command.arg("-b").arg(&judged).arg("-f").arg(&judge).arg("-o").arg(&out);
    command.args(["-q", &disks, "-r", "3072", "-t", BOOT_SECS]);
    command.arg(std::env::var(KERNEL_ENV).as_deref().unwrap_or(KERNEL)).arg(script).stdin(Stdio::null());
    let boot = command.output().map_err(|err| format!("tests/kernels/boot: {err}"))?;
    if let Some(raw) = raw {
        names.iter().for_each(|name| {
            let file = format!("{name}.iotop");
            let _ = std::fs::copy(out.join(&file), raw.join(&file));
        });
    }
    Ok(boot)
}
