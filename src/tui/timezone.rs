//! The person's time zone.

/// Seconds east of Greenwich at `wall_ns`, by the C library (TZ or the system's zone); 0 if it does not say.
#[allow(unsafe_code)]
pub(crate) fn utc_offset_secs(wall_ns: i64) -> i64 {
    // The C library's type of seconds, whose name the crate deprecates for musl.
    let secs = wall_ns.div_euclid(1_000_000_000) as _;
    // SAFETY: `tm` is a plain C struct that may be all zero, and both pointers are to live locals.
    // localtime_r reads TZ; no thread of this program ever changes the environment.
    unsafe {
        let mut tm: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&secs, &mut tm).is_null() { 0 } else { tm.tm_gmtoff }
    }
}
