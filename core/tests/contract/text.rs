//! Contracts as proto source text, the way older servers return them.

use crate::{older_server, published};
use chronicle_connection::{Schema, diff};
use prost::Message as _;
use prost_types::FileDescriptorSet;

/// What text does not carry, and what is therefore not compared against it: the types of
/// `google.protobuf` and `bcl`, which it only imports, and the enum's name in front of enum values.
#[test]
fn the_text_and_the_set_of_a_published_contract_are_equal() {
    for (name, bytes) in published::sets() {
        let set = FileDescriptorSet::decode(bytes.clone()).unwrap();
        let from_set = Schema::from_descriptor_set(bytes).unwrap();
        for newline in ["\n", "\r\n"] {
            let text = older_server::print(&set, newline);
            let from_text = Schema::from_source_text(&text).unwrap();
            assert_eq!(diff(&from_set, &from_text), [], "{name}: set against text");
            assert_eq!(diff(&from_text, &from_set), [], "{name}: text against set");
        }
    }
}
