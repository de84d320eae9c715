//! Which mounts matter to rules.

use crate::model::raw_bytes::RawBytes;
use crate::model::topology::MountRef;

/// Whether a mount has an option, of its own or of its file system.
pub(super) fn has_option(mount: &MountRef, option: &str) -> bool {
    let has = |options: &RawBytes| options.as_bytes().split(|b| *b == b',').any(|o| o == option.as_bytes());
    has(&mount.options) || has(&mount.super_options)
}

/// Whether a mount's free space matters: it is writable and no image.
pub(super) fn can_fill_up(mount: &MountRef) -> bool {
    !mount.is_hidden && !mount.is_bind && !has_option(mount, "ro")
}
