//! Snapshots of screens. A scene is stored at one size; at every other size its text must only fill the screen and be
//! safe to print, so that a change of wording alters one file.
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

/// Checks the text of a scene, and compares it with its snapshot if this size is stored.
pub fn assert_screen(name: &str, (width, height): (u16, u16), text: String) {
    let name = format!("{name}_{width}x{height}");
    assert_eq!(text.lines().count(), usize::from(height), "{name}");
    assert!(text.chars().all(|c| c == '\n' || iotop_plus::sanitize::is_safe(c)), "{name}: {text}");
    if (width, height) == TYPICAL || SMALL.contains(&name.as_str()) {
        assert_snapshot(&name, text);
    }
}

/// Compares a text with its snapshot.
pub fn assert_snapshot(name: &str, text: String) {
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false, snapshot_path => "../snapshots" }, {
        insta::assert_snapshot!(name, text);
    });
}
