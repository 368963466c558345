//! What holds for contracts of any bytes. The fuzzer and the tests both call it.

use chronicle_connection::{Schema, diff};

/// Reads bytes as a descriptor set; panics where a promise is broken.
pub(crate) fn check_binary(data: &[u8]) {
    if let Ok(schema) = Schema::from_descriptor_set(data.to_vec()) {
        assert_eq!(diff(&schema, &schema), []);
        check_writing(&schema);
    }
}

/// Reads bytes as source text; what was read is also a descriptor set of the same content.
pub(crate) fn check_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(from_text) = Schema::from_source_text(text) {
        let from_set = Schema::from_descriptor_set(from_text.descriptor_set().clone())
            .expect("what was read once can be read again");
        assert_eq!(diff(&from_text, &from_set), []);
        assert_eq!(diff(&from_set, &from_text), []);
        check_writing(&from_text);
    }
}

/// Reads bytes as two descriptor sets, the first as long as the first two bytes say.
pub(crate) fn check_diff(data: &[u8]) {
    let Some((length, data)) = data.split_first_chunk() else {
        return;
    };
    let first = data.len().min(usize::from(u16::from_le_bytes(*length)));
    let (first, second) = data.split_at(first);
    let (Ok(one), Ok(other)) = (
        Schema::from_descriptor_set(first.to_vec()),
        Schema::from_descriptor_set(second.to_vec()),
    ) else {
        return;
    };
    let findings = diff(&one, &other);
    assert!(findings.is_sorted_by_key(|finding| (&finding.path, finding.kind)));
    // Sets concatenate as bytes. Additions are never reported.
    if let Ok(both) = Schema::from_descriptor_set(data.to_vec()) {
        assert_eq!(diff(&one, &both), []);
        assert_eq!(diff(&other, &both), []);
    }
}

/// What is written is all there when it is read.
fn check_writing(schema: &Schema) {
    if let Ok(set) = schema.to_descriptor_set()
        && !set.is_empty()
    {
        let written = Schema::from_descriptor_set(set).expect("what is written can be read");
        assert_eq!(diff(schema, &written), []);
    }
    if let Ok(files) = schema.to_proto_files() {
        assert!(files.is_sorted_by(|a, b| a.name < b.name));
    }
}
