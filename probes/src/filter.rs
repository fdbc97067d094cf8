//! Classic BPF programs that let the kernel drop what nobody asked for.
//!
//! The instruction set is that of the kernel's `Documentation/networking/filter.rst`; offsets
//! are those of an Ethernet frame without VLAN tag (the kernel keeps the tag aside).

use assay_captures::ids::Port;
use libc::sock_filter;

const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
const LOAD_HALF_INDEXED: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_IND) as u16;
/// X = 4 × (the low half of the byte at k): the length of an IPv4 header.
const LOAD_HEADER_LENGTH: u16 = (libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const JUMP_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JUMP_SET: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

const ETHERTYPE_IPV4: u32 = 0x0800;
const ETHERTYPE_IPV6: u32 = 0x86dd;
const PROTOCOL_TCP: u32 = 6;
/// "More fragments" and the fragment offset: a piece of a datagram has no ports of its own, and
/// TCP avoids pieces.
const FRAGMENT: u32 = 0x3fff;

const fn instruction(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

const fn branch(code: u16, k: u32, if_true: u8, if_false: u8) -> sock_filter {
    sock_filter { code, jt: if_true, jf: if_false, k }
}

const DROP: sock_filter = instruction(RETURN, 0);
/// All of the packet, however long it is.
const ACCEPT: sock_filter = instruction(RETURN, u32::MAX);

/// Accepts whole TCP packets from or to one of the ports, over IPv4 or IPv6 (without extension
/// headers, which TCP does not use between hosts of today).
#[must_use]
pub fn tcp_ports(ports: &[Port]) -> Vec<sock_filter> {
    let mut ipv4 = vec![
        instruction(LOAD_BYTE, 23),
        branch(JUMP_EQUAL, PROTOCOL_TCP, 1, 0),
        DROP,
        instruction(LOAD_HALF, 20),
        branch(JUMP_SET, FRAGMENT, 0, 1),
        DROP,
        instruction(LOAD_HEADER_LENGTH, 14),
    ];
    for offset in [14, 16] {
        ipv4.push(instruction(LOAD_HALF_INDEXED, offset));
        ipv4.extend(any_of(ports));
    }
    ipv4.push(DROP);
    let mut ipv6 = vec![instruction(LOAD_BYTE, 20), branch(JUMP_EQUAL, PROTOCOL_TCP, 1, 0), DROP];
    for offset in [54, 56] {
        ipv6.push(instruction(LOAD_HALF, offset));
        ipv6.extend(any_of(ports));
    }
    ipv6.push(DROP);

    let mut program = vec![
        instruction(LOAD_HALF, 12),
        branch(JUMP_EQUAL, ETHERTYPE_IPV4, 2, 0),
        branch(JUMP_EQUAL, ETHERTYPE_IPV6, 2, 0),
        DROP,
        instruction(JUMP, 1),
        // Conditional jumps reach 255 instructions only; this one reaches over any list of ports.
        instruction(JUMP, ipv4.len() as u32),
    ];
    program.extend(ipv4);
    program.extend(ipv6);
    program
}

/// Accepts where the accumulator is one of the ports; goes on behind itself otherwise.
fn any_of(ports: &[Port]) -> impl Iterator<Item = sock_filter> {
    ports.iter().flat_map(|port| [branch(JUMP_EQUAL, u32::from(port.0), 0, 1), ACCEPT])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program as the kernel would; `None` where it would refuse.
    fn run(program: &[sock_filter], packet: &[u8]) -> Option<bool> {
        let (mut a, mut x, mut at) = (0_u32, 0_u32, 0_usize);
        let half = |at: u32| {
            let bytes = packet.get(at as usize..at as usize + 2)?;
            Some(u32::from(u16::from_be_bytes([bytes[0], bytes[1]])))
        };
        loop {
            let step = *program.get(at)?;
            at += 1;
            let jump = |taken: bool| usize::from(if taken { step.jt } else { step.jf });
            match step.code {
                LOAD_BYTE => a = u32::from(*packet.get(step.k as usize)?),
                LOAD_HALF => a = half(step.k)?,
                LOAD_HALF_INDEXED => a = half(step.k + x)?,
                LOAD_HEADER_LENGTH => x = u32::from(packet.get(step.k as usize)? & 15) * 4,
                JUMP => at += step.k as usize,
                JUMP_EQUAL => at += jump(a == step.k),
                JUMP_SET => at += jump(a & step.k != 0),
                RETURN => return Some(step.k > 0),
                _ => return None,
            }
        }
    }

    fn packet(v6: bool, protocol: u8, source: u16, destination: u16, options: u8) -> Vec<u8> {
        let mut bytes = vec![0; 12];
        if v6 {
            bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, protocol, 64]);
            bytes.extend([0; 32]);
        } else {
            bytes.extend([8, 0, 0x45 + options, 0, 0, 40, 0, 0, 0x40, 0, 64, protocol]);
            bytes.extend([0; 10]);
            bytes.resize(bytes.len() + usize::from(options) * 4, 1);
        }
        bytes.extend(source.to_be_bytes());
        bytes.extend(destination.to_be_bytes());
        bytes.extend([0; 16]);
        bytes
    }

    #[test]
    fn tcp_of_these_ports_passes_in_both_directions_and_nothing_else() {
        let program = tcp_ports(&[Port(5433), Port(8080)]);
        for v6 in [false, true] {
            for (source, destination, passes) in
                [(5433, 9, true), (9, 5433, true), (8080, 1, true), (1, 8080, true), (1, 2, false)]
            {
                let tcp = packet(v6, 6, source, destination, 0);
                assert_eq!(run(&program, &tcp), Some(passes), "{v6} {source} {destination}");
                let udp = packet(v6, 17, source, destination, 0);
                assert_eq!(run(&program, &udp), Some(false));
            }
        }
        assert_eq!(run(&program, &packet(false, 6, 9, 8080, 10)), Some(true), "IPv4 options");
        let mut piece = packet(false, 6, 9, 8080, 0);
        piece[20] = 0x20;
        assert_eq!(run(&program, &piece), Some(false), "a fragment");
        let mut arp = packet(false, 6, 9, 8080, 0);
        arp[13] = 6;
        assert_eq!(run(&program, &arp), Some(false));
    }

    #[test]
    fn a_long_list_of_ports_needs_no_long_jump() {
        let ports: Vec<Port> = (1..=400).map(Port).collect();
        let program = tcp_ports(&ports);
        assert!(program.len() < 4096, "the kernel's limit");
        assert_eq!(run(&program, &packet(true, 6, 60_000, 400, 0)), Some(true));
        assert_eq!(run(&program, &packet(false, 6, 60_000, 400, 3)), Some(true));
        assert_eq!(run(&program, &packet(false, 6, 60_000, 401, 3)), Some(false));
    }
}
