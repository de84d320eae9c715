//! Fuzz targets: tables below `/proc`. See [`crate::fuzz`].

use super::{cifs, diskstats, meminfo, netdev, nfs, route, stat, vmstat};
use crate::model::mount::MountTable;
use crate::parse::bytes::lines;
use crate::parse::{cache, mountinfo};

pub(crate) fn tables(input: &[u8]) {
    let disks = lines(input).filter_map(diskstats::parse_line).count();
    assert!(disks <= input.len() && netdev::parse(input).len() <= input.len());
    for line in lines(input) {
        let _ = (cache::parse_dm_cache_status(line), cache::parse_bcache_size(line));
    }
    let _ = (meminfo::parse(input), vmstat::parse(input, 4096), stat::parse(input));
    let v4 = lines(input).filter_map(route::parse_ipv4_route);
    let routes = route::RouteTable(v4.chain(lines(input).filter_map(route::parse_ipv6_route)).collect());
    for address in ["10.0.0.5", "fe80::1%eth0", "[::1]", "2001:db8::1"] {
        routes.interface_to(address);
    }
}

/// The counters of NFS and CIFS; the mount table comes first, up to a NUL.
pub(crate) fn network_mounts(input: &[u8]) {
    let split = input.iter().position(|b| *b == 0).unwrap_or(0);
    let (table, counters) = input.split_at(split);
    let mounts = MountTable(mountinfo::parse(table).collect());
    let rows = [nfs::parse(counters, &mounts), cifs::parse(counters, &mounts)].concat();
    assert!(rows.len() <= input.len());
    let routes = route::RouteTable(Vec::new());
    for row in rows {
        if let Some(address) = &row.address {
            routes.interface_to(address);
        }
        row.version.iter().for_each(|version| crate::sanitize::assert_safe(version));
    }
}
