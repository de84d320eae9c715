//! The collector on captured trees and on live children.

use super::*;

#[test]
fn live_smoke() {
    let mut c = ProcCollector::new(&Root::live());
    for i in 0..3 {
        let u = c.scan(&Wants::default());
        let u = u.ok().unwrap();
        eprintln!(
            "{i}: {} ms changed {} gone {} names {} users {:?} total {} hidden {} blocked {:?} delays {:?} {:?} ts {:?}",
            u.took_ns as f64 / 1e6,
            u.changed.len(),
            u.gone.len(),
            u.names.len(),
            u.users,
            u.total,
            u.hidden,
            u.blocked,
            u.delays,
            u.notes,
            c.prober.taskstats
        );
    }
}
