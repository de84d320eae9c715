//! Snapshots of panes. A scene is stored at one size; at every other size its text must only fill the screen and be
//! safe to print, so that a change of wording alters one file. The header and the footer are left out, so that a change
//! there alters only the few scenes that are about them.
//!
//! Snapshots are in `tests/snapshots`; `INSTA_UPDATE=always cargo test` rewrites them.

/// The size that is stored.
const TYPICAL: (u16, u16) = (120, 40);

/// Scenes stored at another size: the first screens on a small terminal, and what is about narrow screens.
const SMALL: [&str; 13] = [
    "overview_80x24",
    "devices_80x24",
    "processes_80x24",
    "dialog_40x12",
    "prompt_wrong_80x24",
    "path_detail_waiting_80x24",
    "findings_start_80x24",
    "syncs_denied_80x24",
    "bench_network_80x24",
    "bench_elsewhere_80x24",
    "experiment_refused_80x24",
    "experiment_cancelled_80x24",
    "tune_editing_word_80x24",
];

/// Scenes stored with header and footer, because these show what the scene is about.
const WHOLE: [&str; 14] = [
    "overview",
    "start",
    "help",
    "dialog",
    "prompt_wrong",
    "frozen",
    "bench_running",
    "experiment_running",
    "tune_lease",
    "recording",
    "recording_stuck",
    "recording_prompt",
    "replay",
    "replay_paused_damaged",
];

/// Checks the text of a scene, and compares it with its snapshot if this size is stored.
pub fn assert_screen(name: &str, (width, height): (u16, u16), text: String) {
    let whole = WHOLE.contains(&name);
    let name = format!("{name}_{width}x{height}");
    assert_eq!(text.lines().count(), usize::from(height), "{name}");
    assert!(text.chars().all(|c| c == '\n' || iotop_plus::sanitize::is_safe(c)), "{name}: {text}");
    if (width, height) == TYPICAL || SMALL.contains(&name.as_str()) {
        assert_snapshot(&name, if whole { text } else { panes(&text) });
    }
}

/// The lines between the header and the footer; a run of equal lines is stored as one line and their number.
fn panes(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::new();
    for run in lines[1..lines.len() - 1].chunk_by(|a, b| a == b) {
        match run.len() {
            1 => out += &format!("{}\n", run[0]),
            n => out += &format!("{}\n({} more)\n", run[0], n - 1),
        }
    }
    out
}

/// Compares a text with its snapshot.
pub fn assert_snapshot(name: &str, text: String) {
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false, snapshot_path => "../snapshots" }, {
        insta::assert_snapshot!(name, text);
    });
}
