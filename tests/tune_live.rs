//! The tuner on the real kernel: killed at every step, with an expired lease, a closed terminal and a concurrent
//! admin. Needs root; restores every value, even when a test fails.

#[path = "tune/apart.rs"]
mod apart;
#[path = "tune/devices.rs"]
mod devices;
#[path = "tune/experiment.rs"]
mod experiment;
#[path = "tune/journal_on_disk.rs"]
mod journal_on_disk;
#[path = "tune/killed.rs"]
mod killed;
#[path = "tune/lease.rs"]
mod lease;
#[path = "tune/machine.rs"]
mod machine;
mod pty_harness;
#[path = "tune/screen.rs"]
mod screen;
