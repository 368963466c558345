//! Watches HTTP/2 frames pass, without touching them (RFC 9113 section 4.1).
//!
//! With streams alive, h2 tells of a GOAWAY only at the next request, so it is read off the wire.

/// What passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// GOAWAY with its error code.
    GoAway(u32),
    /// `SETTINGS_MAX_CONCURRENT_STREAMS`.
    MaxStreams(u32),
    /// The end of a SETTINGS frame that is no acknowledgement.
    Settings,
}

/// Follows the frames of one direction of a connection, in pieces of any size.
#[derive(Debug)]
pub(crate) struct FrameWatch {
    part: Part,
    bytes: [u8; FRAME_HEADER],
    filled: usize,
}

/// The part of a frame that comes next, with what is left of its payload.
#[derive(Debug, Clone, Copy)]
enum Part {
    Header,
    GoAway(usize),
    Setting(usize),
    Rest(usize),
}

impl FrameWatch {
    pub(crate) fn new() -> Self {
        Self {
            part: Part::Header,
            bytes: [0; FRAME_HEADER],
            filled: 0,
        }
    }

    /// Takes the next bytes and tells what they complete.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], mut tell: impl FnMut(Seen)) {
        while !bytes.is_empty() {
            match self.part {
                Part::Header => {
                    if self.fill(&mut bytes, FRAME_HEADER) {
                        self.header(&mut tell);
                    }
                }
                Part::GoAway(left) => {
                    if self.fill(&mut bytes, GOAWAY_FIXED) {
                        let [_, _, _, _, a, b, c, d, _] = self.bytes;
                        tell(Seen::GoAway(u32::from_be_bytes([a, b, c, d])));
                        self.rest(left - GOAWAY_FIXED);
                    }
                }
                Part::Setting(left) => {
                    if self.fill(&mut bytes, SETTING) {
                        let [id_high, id_low, a, b, c, d, ..] = self.bytes;
                        if u16::from_be_bytes([id_high, id_low]) == MAX_CONCURRENT_STREAMS {
                            tell(Seen::MaxStreams(u32::from_be_bytes([a, b, c, d])));
                        }
                        self.settings(left - SETTING, &mut tell);
                    }
                }
                Part::Rest(left) => {
                    let skipped = left.min(bytes.len());
                    bytes = &bytes[skipped..];
                    self.rest(left - skipped);
                }
            }
        }
    }

    /// Fills up to `wanted` bytes; true when they are all there.
    fn fill(&mut self, bytes: &mut &[u8], wanted: usize) -> bool {
        let taken = (wanted - self.filled).min(bytes.len());
        self.bytes[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
        *bytes = &bytes[taken..];
        self.filled += taken;
        if self.filled < wanted {
            return false;
        }
        self.filled = 0;
        true
    }

    fn header(&mut self, tell: &mut impl FnMut(Seen)) {
        let [a, b, c, kind, flags, ..] = self.bytes;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        match kind {
            TYPE_GOAWAY if length >= GOAWAY_FIXED => self.part = Part::GoAway(length),
            TYPE_SETTINGS if flags & ACK == 0 => self.settings(length, tell),
            _ => self.rest(length),
        }
    }

    fn settings(&mut self, left: usize, tell: &mut impl FnMut(Seen)) {
        if left >= SETTING {
            self.part = Part::Setting(left);
            return;
        }
        tell(Seen::Settings);
        self.rest(left);
    }

    fn rest(&mut self, left: usize) {
        self.part = if left == 0 {
            Part::Header
        } else {
            Part::Rest(left)
        };
    }
}

const FRAME_HEADER: usize = 9;
const GOAWAY_FIXED: usize = 8;
const SETTING: usize = 6;
const TYPE_SETTINGS: u8 = 0x4;
const TYPE_GOAWAY: u8 = 0x7;
const ACK: u8 = 0x1;
const MAX_CONCURRENT_STREAMS: u16 = 0x3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_cut_anywhere_tell_the_same() {
        let wire = [
            frame(TYPE_SETTINGS, 0, &[0, 4, 0, 0, 1, 0, 0, 3, 0, 0, 0, 100]),
            frame(TYPE_SETTINGS, ACK, &[]),
            frame(TYPE_SETTINGS, 0, &[]),
            frame(0x0, 0, &[7; 300]),
            frame(0x0, 0, &[]),
            frame(TYPE_GOAWAY, 0, b"\x7f\xff\xff\xff\0\0\0\x0bcalm down"),
            frame(TYPE_GOAWAY, 0, b"short"),
            frame(TYPE_GOAWAY, 0, &[0; 8]),
        ]
        .concat();
        let expected = [
            Seen::MaxStreams(100),
            Seen::Settings,
            Seen::Settings,
            Seen::GoAway(11),
            Seen::GoAway(0),
        ];
        for piece in 1..=wire.len() {
            let mut watch = FrameWatch::new();
            let mut seen = Vec::new();
            for bytes in wire.chunks(piece) {
                watch.feed(bytes, |what| seen.push(what));
            }
            assert_eq!(seen, expected, "in pieces of {piece}");
        }
    }

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, flags, 0, 0, 0, 0]);
        frame.extend(payload);
        frame
    }
}
