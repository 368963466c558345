//! Walks protobuf's wire format where it lies, without copying or building anything.

use super::schema::Span;
use std::ops::Range;

/// What is left of one message, as positions in the bytes of the whole.
#[derive(Debug, Clone)]
pub(super) struct Wire<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
}

/// The value of one field of a message.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Varint(u64),
    /// The positions of a string, of bytes or of a message.
    Bytes(Range<usize>),
    /// Fixed-width numbers and groups: nothing that descriptors use.
    Other,
}

/// What is wrong with the bytes, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Malformed {
    pub(super) at: usize,
    pub(super) what: &'static str,
}

impl<'a> Wire<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            end: bytes.len(),
        }
    }

    /// The message at a place in the same bytes.
    pub(super) fn inside(&self, place: Range<usize>) -> Self {
        Self {
            bytes: self.bytes,
            at: place.start,
            end: place.end,
        }
    }

    pub(super) fn at(&self, span: Span) -> &'a [u8] {
        &self.bytes[span.range()]
    }

    /// The next field: its number and its value; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Value)>, Malformed> {
        if self.at >= self.end {
            return Ok(None);
        }
        let (number, wire_type) = self.tag()?;
        if wire_type != START_GROUP {
            return Ok(Some((number, self.value(wire_type)?)));
        }
        self.skip_group(number)?;
        Ok(Some((number, Value::Other)))
    }

    pub(super) fn malformed<T>(&self, what: &'static str) -> Result<T, Malformed> {
        Err(Malformed { at: self.at, what })
    }

    fn tag(&mut self) -> Result<(u64, u8), Malformed> {
        let tag = self.varint()?;
        if tag >> 3 == 0 || tag > u64::from(u32::MAX) {
            return self.malformed("a field number out of range");
        }
        Ok((tag >> 3, (tag & 7) as u8))
    }

    fn value(&mut self, wire_type: u8) -> Result<Value, Malformed> {
        match wire_type {
            VARINT => Ok(Value::Varint(self.varint()?)),
            FIXED_64 => self.skip(8).map(|_| Value::Other),
            BYTES => {
                let length = self.varint()?;
                Ok(Value::Bytes(self.skip(length)?))
            }
            FIXED_32 => self.skip(4).map(|_| Value::Other),
            _ => self.malformed("a wire type that has no place here"),
        }
    }

    fn skip_group(&mut self, number: u64) -> Result<(), Malformed> {
        let mut open = vec![number];
        while let Some(&innermost) = open.last() {
            match self.tag()? {
                (number, END_GROUP) if number == innermost => drop(open.pop()),
                (number, START_GROUP) if open.len() < MAX_NESTING => open.push(number),
                (_, START_GROUP) => return self.malformed(TOO_DEEP),
                (_, wire_type) => {
                    self.value(wire_type)?;
                }
            }
        }
        Ok(())
    }

    fn skip(&mut self, length: u64) -> Result<Range<usize>, Malformed> {
        let start = self.at;
        if length > (self.end - start) as u64 {
            return self.malformed("a length that runs past the end");
        }
        self.at += length as usize;
        Ok(start..self.at)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let Some(&byte) = self.bytes[..self.end].get(self.at) else {
                return self.malformed("an unexpected end");
            };
            self.at += 1;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        self.malformed("a number of more than 64 bits")
    }
}

/// As deep as prost goes; a bound on what hostile bytes can do to the stack.
pub(super) const MAX_NESTING: usize = 100;
pub(super) const TOO_DEEP: &str = "nesting deeper than 100 levels";

const VARINT: u8 = 0;
const FIXED_64: u8 = 1;
const BYTES: u8 = 2;
const START_GROUP: u8 = 3;
const END_GROUP: u8 = 4;
const FIXED_32: u8 = 5;
