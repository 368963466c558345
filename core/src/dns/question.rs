//! The one question that is asked: the SRV records of a cluster's name.

use crate::connection_string::SRV_PREFIX;
use bytes::Bytes;
use hickory_proto::{
    ProtoError,
    op::{Edns, Message, MessageType, OpCode, Query},
    rr::{Name, RecordType},
};

/// A question as it is sent, to hold answers against.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(super) id: u16,
    pub(super) query: Query,
    /// Whether the name server is told that longer datagrams are welcome.
    pub(super) edns: bool,
}

impl Question {
    /// Asks for the servers of a cluster, with the message to send. The name is absolute: no search domain is ever appended.
    ///
    /// # Errors
    /// Where the name is none; a connection string lets no such name through.
    pub(crate) fn new(cluster: &str, id: u16, edns: bool) -> Result<(Self, Bytes), ProtoError> {
        let labels = SRV_PREFIX.split_terminator('.').chain(cluster.split('.'));
        let name = Name::from_labels(labels.map(str::as_bytes))?;
        let question = Self {
            id,
            query: Query::query(name, RecordType::SRV),
            edns,
        };
        let message = question.message()?;
        Ok((question, message))
    }

    fn message(&self) -> Result<Bytes, ProtoError> {
        let mut message = Message::new(self.id, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        message.add_query(self.query.clone());
        if self.edns {
            let mut edns = Edns::new();
            edns.set_max_payload(MAX_PAYLOAD);
            message.set_edns(edns);
        }
        message.to_vec().map(Bytes::from)
    }
}

/// What travels unfragmented nearly everywhere (DNS flag day 2020).
const MAX_PAYLOAD: u16 = 1232;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_is_absolute_and_recursive_and_offers_1232_bytes() {
        let (_, message) = Question::new("example.com", 0x1234, true).unwrap();
        let expected = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01\
            \x0a_chronicle\x04_tcp\x07example\x03com\x00\x00\x21\x00\x01\
            \x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00";
        assert_eq!(message, &expected[..]);

        let (_, message) = Question::new("example.com", 0x1234, false).unwrap();
        let mut expected = expected[..expected.len() - 11].to_vec();
        expected[11] = 0;
        assert_eq!(message, expected);
    }

    #[test]
    fn the_longest_name_that_a_connection_string_takes_can_be_asked_for() {
        let label = "a".repeat(63);
        let longest = [&label[..], &label, &label, &"a".repeat(45)].join(".");
        let uri = format!("chronicle+srv://{longest}");
        assert!(uri.parse::<crate::ConnectionString>().is_ok());
        assert!(
            format!("{uri}a")
                .parse::<crate::ConnectionString>()
                .is_err()
        );
        assert!(Question::new(&longest, 0, true).is_ok());
    }
}
