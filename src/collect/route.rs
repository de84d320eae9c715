//! Which interface carries the traffic to a server: `/proc/net/route` and `/proc/net/ipv6_route` (net/ipv4/fib_trie.c
//! fib_route_seq_show(), net/ipv6/route.c rt6_info_route()).
//!
//! The longest prefix wins, then the lowest metric, in the main table; policy routing is ignored.

use super::kernel_file::read_once;
use crate::parse::bytes::{lines, parse_u64, words};
use crate::root::Root;
use std::net::IpAddr;

/// include/uapi/linux/route.h, include/uapi/linux/ipv6_route.h
const RTF_UP: u32 = 0x1;
const RTF_REJECT: u32 = 0x200;
const RTF_LOCAL: u32 = 0x8000_0000;

#[derive(Debug, Default)]
pub(super) struct RouteTable(pub(super) Vec<Route>);

#[derive(Debug)]
pub(super) struct Route {
    /// IPv4 as its mapped IPv6 address, so that one comparison serves both.
    net: u128,
    /// Significant leading bits, of 128.
    prefix: u32,
    metric: u64,
    interface: String,
}

impl RouteTable {
    /// Reads the current routes; a disabled address family has none.
    pub(super) fn read(root: &Root) -> Self {
        let mut buf = Vec::new();
        let mut routes = Vec::new();
        if let Ok(text) = read_once(&root.proc("net/route"), &mut buf) {
            routes.extend(lines(text).filter_map(parse_ipv4_route));
        }
        if let Ok(text) = read_once(&root.proc("net/ipv6_route"), &mut buf) {
            routes.extend(lines(text).filter_map(parse_ipv6_route));
        }
        Self(routes)
    }

    /// The interface towards an address in the form of mount options (`10.0.0.5`, `fe80::1%eth0`).
    pub(super) fn interface_to(&self, address: &str) -> Option<String> {
        let bare = address.trim_start_matches('[').split(']').next()?;
        let (host, scope) = bare.split_once('%').map_or((bare, None), |(h, s)| (h, Some(s)));
        if let Some(scope) = scope.filter(|s| parse_u64(s.as_bytes()).is_none()) {
            return Some(scope.to_owned());
        }
        let ip: IpAddr = host.parse().ok()?;
        if ip.is_loopback() {
            return Some("lo".into());
        }
        let (want, floor) = match ip {
            IpAddr::V4(v4) => (v4.to_ipv6_mapped().to_bits(), 96),
            IpAddr::V6(v6) => (v6.to_bits(), 0),
        };
        self.0
            .iter()
            .filter(|r| {
                r.prefix >= floor && (floor == 96 || !is_ipv4_mapped(r)) && (want ^ r.net) & prefix_mask(r.prefix) == 0
            })
            .max_by_key(|r| (r.prefix, std::cmp::Reverse(r.metric)))
            .map(|r| r.interface.clone())
    }
}

fn is_ipv4_mapped(r: &Route) -> bool {
    r.prefix >= 96 && r.net >> 32 == 0xffff
}

fn prefix_mask(prefix: u32) -> u128 {
    if prefix == 0 { 0 } else { u128::MAX << (128 - prefix.min(128)) }
}

/// `Iface Destination Gateway Flags RefCnt Use Metric Mask ...`; addresses are hexadecimal in native byte order.
pub(super) fn parse_ipv4_route(line: &[u8]) -> Option<Route> {
    let w: Vec<&[u8]> = words(line).collect();
    let [name, net, _, flags, _, _, metric, mask, ..] = w[..] else { return None };
    let address = |w| Some(u32::from_be_bytes(u32::try_from(parse_hex(w)?).ok()?.to_ne_bytes()));
    let flags = parse_hex(flags)? as u32;
    (flags & RTF_UP != 0 && flags & RTF_REJECT == 0).then_some(())?;
    Some(Route {
        net: std::net::Ipv4Addr::from_bits(address(net)?).to_ipv6_mapped().to_bits(),
        prefix: 96 + address(mask)?.leading_ones(),
        metric: parse_u64(metric)?,
        interface: String::from_utf8_lossy(name).into_owned(),
    })
}

/// `net prefix source prefix gateway metric refs use flags name`, all hexadecimal.
pub(super) fn parse_ipv6_route(line: &[u8]) -> Option<Route> {
    let w: Vec<&[u8]> = words(line).collect();
    let [net, prefix, _, _, _, metric, _, _, flags, name] = w[..] else { return None };
    let flags = parse_hex(flags)? as u32;
    (flags & RTF_UP != 0 && flags & RTF_REJECT == 0).then_some(())?;
    let local = flags & RTF_LOCAL != 0;
    Some(Route {
        net: parse_hex(net)?,
        prefix: u32::try_from(parse_hex(prefix)?).ok().filter(|p| *p <= 128)?,
        metric: u64::try_from(parse_hex(metric)?).ok()?,
        interface: if local { "lo".into() } else { String::from_utf8_lossy(name).into_owned() },
    })
}

fn parse_hex(word: &[u8]) -> Option<u128> {
    u128::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn example_routes() -> RouteTable {
        let head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";
        let row = |name: &str, net: [u8; 4], mask: [u8; 4], flags: u32, metric: u32| {
            let word = |b: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(b));
            format!("{name}\t{}\t00000000\t{flags:04X}\t0\t0\t{metric}\t{}\t0\t0\t0\n", word(net), word(mask))
        };
        let v4_text = [
            head.to_owned(),
            row("eth0", [0, 0, 0, 0], [0, 0, 0, 0], 3, 100),
            row("wlan0", [0, 0, 0, 0], [0, 0, 0, 0], 3, 600),
            row("bond1", [10, 8, 0, 0], [255, 255, 0, 0], 1, 0),
            row("dead0", [10, 8, 1, 0], [255, 255, 255, 0], 0x201, 0),
        ]
        .concat();
        let v6_text = "\
            fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth1\n\
            00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000002 00000000 00000003     eth0\n\
            fd000000000000000000000000000002 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000003 00000000 80200001     eth1\n\
            00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n";
        RouteTable(
            lines(v4_text.as_bytes())
                .filter_map(parse_ipv4_route)
                .chain(lines(v6_text.as_bytes()).filter_map(parse_ipv6_route))
                .collect(),
        )
    }

    #[test]
    fn longest_prefix_wins_then_lowest_metric() {
        let r = example_routes();
        let to = |a: &str| r.interface_to(a);
        assert_eq!(to("10.8.1.7").as_deref(), Some("bond1"));
        assert_eq!(to("192.0.2.1").as_deref(), Some("eth0"));
        assert_eq!(to("127.0.0.1").as_deref(), Some("lo"));
        assert_eq!(to("fd00::9").as_deref(), Some("eth1"));
        assert_eq!(to("fd00::2").as_deref(), Some("lo"), "an address of this machine");
        assert_eq!(to("2001:db8::1").as_deref(), Some("eth0"));
        assert_eq!(to("fe80::1%wlan7").as_deref(), Some("wlan7"));
        assert_eq!(to("nas.example"), None);
        assert_eq!(RouteTable::default().interface_to("10.0.0.1"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ 0-9a-f\tethlo\n]{0,200}", address in "[0-9a-f.:%\\[\\]]{0,20}") {
            let routes = RouteTable(lines(text.as_bytes()).filter_map(parse_ipv4_route).chain(lines(text.as_bytes()).filter_map(parse_ipv6_route)).collect());
            let _ = routes.interface_to(&address);
        }
    }
}
