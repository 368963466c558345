//! What two contracts can be compared by, given where they come from.

use super::schema::{Declared, Field, Schema};

/// Knows what one of the two sides cannot tell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lens<'a> {
    expected: &'a Schema,
    actual: &'a Schema,
    /// Whether one side was read from text.
    with_text: bool,
}

impl<'a> Lens<'a> {
    pub(super) fn new(expected: &'a Schema, actual: &'a Schema) -> Self {
        Self {
            expected,
            actual,
            with_text: expected.from_text || actual.from_text,
        }
    }

    /// Whether a declaration of the expected side is compared.
    pub(super) fn sees(&self, declared: &Declared, is_there: bool) -> bool {
        if self.with_text && is_left_out_of_text(self.expected.full_name(declared)) {
            return false;
        }
        is_there || !self.is_only_imported(declared)
    }

    /// Whether the actual side imports the file of a declaration without having it.
    fn is_only_imported(&self, declared: &Declared) -> bool {
        let missing = &self.actual.missing_files;
        let file = self.expected.files.get(declared.file as usize);
        !missing.is_empty()
            && file.is_some_and(|file| {
                let name = self.expected.at(file.name);
                missing
                    .binary_search_by(|missing| self.actual.at(*missing).cmp(name))
                    .is_ok()
            })
    }

    /// Types are the same by scalar type, or by kind and full name. A kind that is unknown, because
    /// the type is declared nowhere on that side, differs from none.
    pub(super) fn same_type(&self, was: &Field, now: &Field) -> bool {
        let same_kind = was.kind == now.kind
            || (was.kind == 0 && !now.type_name.is_empty())
            || (now.kind == 0 && !was.type_name.is_empty());
        same_kind && self.expected.at(was.type_name) == self.actual.at(now.type_name)
    }

    /// In text, values lack the enum's name that descriptor sets put in front of some.
    pub(super) fn same_value_name(&self, owner: &[u8], was: &[u8], now: &[u8]) -> bool {
        if was == now || !self.with_text {
            return was == now;
        }
        let forms = |name| [name, without_prefix(owner, name)];
        forms(was).iter().any(|was| forms(now).contains(was))
    }
}

/// Text does not include what it imports.
fn is_left_out_of_text(name: &[u8]) -> bool {
    name.starts_with(b"google.protobuf.") || name.starts_with(b"bcl.")
}

/// `JOB_STATUS_Running` of `pkg.JobStatus` is `Running`.
fn without_prefix<'a>(owner: &[u8], value: &'a [u8]) -> &'a [u8] {
    value.strip_prefix(&*prefix_of(owner)).unwrap_or(value)
}

/// What stands in front of those values of an enum that would clash without it: `JOB_STATUS_` for
/// `pkg.JobStatus`.
pub(super) fn prefix_of(owner: &[u8]) -> Vec<u8> {
    let simple = owner.rsplit(|byte| *byte == b'.').next();
    let simple = simple.unwrap_or_default();
    let mut prefix = Vec::with_capacity(simple.len() + 8);
    for (index, byte) in simple.iter().enumerate() {
        let starts_word = byte.is_ascii_uppercase()
            && index > 0
            && (!simple[index - 1].is_ascii_uppercase()
                || simple.get(index + 1).is_some_and(u8::is_ascii_lowercase));
        if starts_word {
            prefix.push(b'_');
        }
        prefix.push(byte.to_ascii_uppercase());
    }
    prefix.push(b'_');
    prefix
}

#[cfg(test)]
mod tests {
    use super::prefix_of;

    #[test]
    fn words_of_a_name_are_parted_where_one_begins() {
        for (name, prefix) in [
            ("pkg.JobStatus", "JOB_STATUS_"),
            ("Job", "JOB_"),
            ("a.b.HTTPServerState", "HTTP_SERVER_STATE_"),
            ("IOError2X", "IO_ERROR2_X_"),
            ("ABTest", "AB_TEST_"),
            ("OnTV", "ON_TV_"),
            ("lower", "LOWER_"),
        ] {
            assert_eq!(prefix_of(name.as_bytes()), prefix.as_bytes(), "{name}");
        }
    }
}
