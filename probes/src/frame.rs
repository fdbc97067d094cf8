//! The little that the wire probe looks at inside a packet while it records.

use assay_captures::ids::Port;

/// Whether an Ethernet frame is the first segment of an HTTP/1 response from one of the ports:
/// enough to stop after about N requests, since servers write a response's head at once.
#[must_use]
pub fn begins_response(frame: &[u8], ports: &[Port]) -> bool {
    tcp(frame)
        .is_some_and(|(source, payload)| payload.starts_with(b"HTTP/1.") && ports.contains(&source))
}

/// Source port and payload of a TCP segment that has passed the filter.
fn tcp(frame: &[u8]) -> Option<(Port, &[u8])> {
    let segment = match frame.get(12..14)? {
        [0x08, 0x00] => {
            let header = usize::from(frame.get(14)? & 15) * 4;
            let total = usize::from(u16::from_be_bytes(frame.get(16..18)?.try_into().ok()?));
            // Short frames are padded; a length of 0 is a packet above 64 KB.
            let end = if total == 0 { frame.len() } else { (14 + total).min(frame.len()) };
            frame.get(14 + header..end)?
        }
        [0x86, 0xdd] => frame.get(54..)?,
        _ => return None,
    };
    let source = Port(u16::from_be_bytes(segment.get(..2)?.try_into().ok()?));
    let payload = segment.get(usize::from(segment.get(12)? >> 4) * 4..)?;
    Some((source, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_known_by_its_port_and_its_first_bytes() {
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6]);
        frame.extend([0; 10]);
        frame.extend([0x1f, 0x90, 0, 9]);
        frame.extend([0; 8]);
        frame.extend([0x50; 8]);
        frame.extend(b"HTTP/1.1 200 OK\r\n");
        assert!(begins_response(&frame, &[Port(1), Port(8080)]));
        assert!(!begins_response(&frame, &[Port(1)]));
        for cut in 0..frame.len() - 10 {
            assert!(!begins_response(&frame[..cut], &[Port(8080)]));
        }
    }
}
