//! `/proc/net/route` and `/proc/net/ipv6_route`: by which interface an address is reached.
//!
//! ```text
//! Iface  Destination  Gateway   Flags RefCnt Use Metric Mask     MTU Window IRTT
//! eth0   00000000     010011AC  0003  0      0   0      00000000 0   0      0
//! ```
//!
//! Only the main table is there: who routes by other rules (marks, sources) is answered wrongly,
//! and then no packet is seen and nothing is counted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The route is usable, and does not say "unreachable".
const UP: u32 = 0x1;
const REJECT: u32 = 0x200;

/// One way out of a network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The interface.
    pub interface: String,
    /// The addresses that it is for: those that agree with this one in `bits` bits.
    to: IpAddr,
    bits: u32,
    metric: u32,
}

/// The routes of both tables. Lines that are none are passed over.
pub(super) fn routes(version_4: &str, version_6: &str) -> Vec<Route> {
    version_4.lines().filter_map(route).chain(version_6.lines().filter_map(route_6)).collect()
}

fn route(line: &str) -> Option<Route> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    // Words of addresses as this machine reads them from memory.
    let word = |at: usize| u32::from_str_radix(words.get(at)?, 16).ok().map(u32::to_ne_bytes);
    usable(words.get(3)?)?;
    Some(Route {
        interface: (*words.first()?).to_owned(),
        to: IpAddr::V4(Ipv4Addr::from(word(1)?)),
        bits: u32::from_be_bytes(word(7)?).leading_ones(),
        metric: words.get(6)?.parse().ok()?,
    })
}

fn route_6(line: &str) -> Option<Route> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    usable(words.get(8)?)?;
    Some(Route {
        interface: (*words.get(9)?).to_owned(),
        to: IpAddr::V6(Ipv6Addr::from(u128::from_str_radix(words.first()?, 16).ok()?)),
        bits: u32::from_str_radix(words.get(1)?, 16).ok()?,
        metric: u32::from_str_radix(words.get(5)?, 16).ok()?,
    })
}

fn usable(flags: &str) -> Option<()> {
    let flags = u32::from_str_radix(flags, 16).ok()?;
    (flags & UP != 0 && flags & REJECT == 0).then_some(())
}

/// The interface by which an address is reached: the most exact route, of several the cheapest.
pub(super) fn interface_to(routes: &[Route], address: IpAddr) -> Option<&str> {
    let fitting = routes.iter().filter(|route| route.leads_to(address));
    let best = fitting.max_by_key(|route| (route.bits, std::cmp::Reverse(route.metric)))?;
    Some(&best.interface)
}

/// The interface of whoever has no route of its own.
pub(super) fn default_interface(routes: &[Route]) -> Option<&str> {
    let rest = routes.iter().filter(|route| route.bits == 0 && route.interface != "lo");
    Some(&rest.min_by_key(|route| route.metric)?.interface)
}

impl Route {
    fn leads_to(&self, address: IpAddr) -> bool {
        let differing = match (self.to, address) {
            (IpAddr::V4(to), IpAddr::V4(address)) => {
                (to.to_bits() ^ address.to_bits()).leading_zeros()
            }
            (IpAddr::V6(to), IpAddr::V6(address)) => {
                (to.to_bits() ^ address.to_bits()).leading_zeros()
            }
            _ => return false,
        };
        differing >= self.bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_exact_route_decides_and_among_equals_the_cheapest() {
        let four = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
            eth0 00000000 0100000A 0003 0 0 100 00000000 0 0 0\n\
            wlan0 00000000 0100000A 0003 0 0 600 00000000 0 0 0\n\
            veth1 0001A8C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n\
            gone 0002A8C0 00000000 0201 0 0 0 00FFFFFF 0 0 0\n";
        let six = "fd000000000000000000000000000000 40 00000000000000000000000000000000 00 \
            00000000000000000000000000000000 00000100 00000001 00000000 00000001 eth1\n";
        let routes = routes(four, six);
        let to = |address: &str| interface_to(&routes, address.parse().unwrap());
        assert_eq!(to("192.168.1.7"), Some("veth1"));
        assert_eq!(to("192.168.2.7"), Some("eth0"), "a rejecting route leads nowhere");
        assert_eq!(to("1.2.3.4"), Some("eth0"));
        assert_eq!(to("fd00::1"), Some("eth1"));
        assert_eq!(to("fe80::1"), None);
        assert_eq!(default_interface(&routes), Some("eth0"));
    }
}
