//! Walks protobuf's wire format where it lies, without copying or building anything.
//!
//! What every field passes through is always inlined: its results then stay in registers, which
//! makes reading three times as fast.

use super::schema::Span;

/// What is left of one message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wire<'a> {
    rest: &'a [u8],
    /// Where the message ends in the bytes of the whole.
    end: usize,
}

/// The value of one field of a message.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    Varint(u64),
    /// A string, bytes or a message.
    Bytes(Wire<'a>),
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
    /// The message that is the whole. It must not be longer than a [`Span`] can tell.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            end: bytes.len(),
        }
    }

    /// What is left, as bytes.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.rest
    }

    /// Where that lies in the bytes of the whole.
    pub(super) fn span(&self) -> Span {
        Span::between(self.end - self.rest.len(), self.end)
    }

    pub(super) fn malformed<T>(&self, what: &'static str) -> Result<T, Malformed> {
        let at = self.end - self.rest.len();
        Err(Malformed { at, what })
    }

    /// The next field: its number and its value; `None` at the end.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, wire_type) = self.tag()?;
        let value = match wire_type {
            VARINT => Value::Varint(self.varint()?),
            BYTES => Value::Bytes(self.length_delimited()?),
            _ => {
                self.skip_other(number, wire_type)?;
                Value::Other
            }
        };
        Ok(Some((number, value)))
    }

    #[inline(always)]
    fn tag(&mut self) -> Result<(u32, u8), Malformed> {
        let tag = self.varint()?;
        match u32::try_from(tag) {
            Ok(tag) if tag >= 8 => Ok((tag >> 3, (tag & 7) as u8)),
            Ok(_) | Err(_) => self.malformed("a field number out of range"),
        }
    }

    #[inline(always)]
    fn length_delimited(&mut self) -> Result<Self, Malformed> {
        let length = self.varint()?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some((value, rest)) = self.rest.split_at_checked(length) else {
            return self.malformed("a length that runs past the end");
        };
        self.rest = rest;
        Ok(Self {
            rest: value,
            end: self.end - rest.len(),
        })
    }

    /// Most numbers are below 128.
    #[inline(always)]
    fn varint(&mut self) -> Result<u64, Malformed> {
        match self.rest {
            [byte @ ..0x80, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let Some((&byte, rest)) = self.rest.split_first() else {
                return self.malformed("an unexpected end");
            };
            self.rest = rest;
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

    #[cold]
    fn skip_other(&mut self, number: u32, wire_type: u8) -> Result<(), Malformed> {
        if wire_type != START_GROUP {
            return self.skip_fixed(wire_type);
        }
        let mut open = vec![number];
        while let Some(&innermost) = open.last() {
            match self.tag()? {
                (number, END_GROUP) if number == innermost => drop(open.pop()),
                (number, START_GROUP) if open.len() < MAX_NESTING => open.push(number),
                (_, START_GROUP) => return self.malformed(TOO_DEEP),
                (_, VARINT) => drop(self.varint()?),
                (_, BYTES) => drop(self.length_delimited()?),
                (_, wire_type) => self.skip_fixed(wire_type)?,
            }
        }
        Ok(())
    }

    fn skip_fixed(&mut self, wire_type: u8) -> Result<(), Malformed> {
        let length = match wire_type {
            FIXED_64 => 8,
            FIXED_32 => 4,
            _ => return self.malformed("a wire type that has no place here"),
        };
        match self.rest.get(length..) {
            Some(rest) => self.rest = rest,
            None => return self.malformed("an unexpected end"),
        }
        Ok(())
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
