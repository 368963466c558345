//! Reads what a name server sent back.

use super::{NameServerError, question::Question};
use hickory_proto::{
    op::{Header, Message, MessageType, OpCode, ResponseCode},
    rr::{DNSClass, Name, RData, RecordType, rdata::SRV},
    serialize::binary::{BinDecodable, BinDecoder},
};

/// What an answer to a question says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// At least one record, in the order of the answer.
    Records(Vec<SRV>),
    /// There is no such name.
    NoSuchName,
    /// There is such a name, without records of the kind that was asked for.
    NoRecords,
    /// The server does not tell.
    Failed(NameServerError),
}

/// Why a message is no answer to a question. The answer may still come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It belongs to something else: forged, late or astray.
    NotMine,
    /// It claims to be the answer and cannot be read.
    Malformed(String),
}

impl Answer {
    /// Reads a message that came from the server that was asked.
    pub(crate) fn read(message: &[u8], question: &Question) -> Result<Self, Unread> {
        let is_cut = read_header(message, question)?;
        if is_cut {
            // What is left of the records is of no use, whether it can be read or not.
            return Ok(Self::Failed(NameServerError::Truncated));
        }
        let message = Message::from_vec(message).map_err(malformed)?;
        let knows_edns = message.edns.is_some();
        match message.metadata.response_code {
            ResponseCode::NoError => read_records(&message, &question.query.name),
            ResponseCode::NXDomain => Ok(Self::NoSuchName),
            ResponseCode::ServFail => Ok(Self::Failed(NameServerError::ServerFailure)),
            ResponseCode::Refused => Ok(Self::Failed(NameServerError::Refused)),
            // RFC 6891 section 7: how servers say that they do not know EDNS.
            ResponseCode::FormErr | ResponseCode::NotImp if question.edns && !knows_edns => {
                Ok(Self::Failed(NameServerError::NoEdns))
            }
            other => Ok(Self::Failed(NameServerError::Code(other.into()))),
        }
    }
}

/// Checks that a message answers the question, and tells whether its records were cut off.
///
/// A server that fails may leave the question out; nobody but the server that was asked could know
/// the id, and the failure of one server proves nothing about the name.
fn read_header(message: &[u8], question: &Question) -> Result<bool, Unread> {
    let mut decoder = BinDecoder::new(message);
    let header = Header::read(&mut decoder).map_err(|_| Unread::NotMine)?;
    let metadata = header.metadata;
    if metadata.id != question.id
        || metadata.message_type != MessageType::Response
        || metadata.op_code != OpCode::Query
    {
        return Err(Unread::NotMine);
    }
    let has_records = matches!(
        metadata.response_code,
        ResponseCode::NoError | ResponseCode::NXDomain
    );
    match header.counts.queries {
        0 if !has_records => {}
        1 => {
            let queries = Message::read_queries(&mut decoder, 1).map_err(malformed)?;
            if queries.first() != Some(&question.query) {
                return Err(Unread::NotMine);
            }
        }
        _ => return Err(Unread::NotMine),
    }
    Ok(metadata.truncation && has_records)
}

/// The SRV records of a name, through its CNAMEs. What stands outside of the answer section, belongs
/// to another name or is of another class says nothing about it.
fn read_records(message: &Message, name: &Name) -> Result<Answer, Unread> {
    let of_name = |name: &Name| {
        let name = name.clone();
        let records = message.answers.iter();
        records.filter(move |record| record.name == name && record.dns_class == DNSClass::IN)
    };
    let mut name = name.clone();
    for _ in 0..=MAX_CNAMES {
        let srv = of_name(&name).filter_map(|record| match &record.data {
            RData::SRV(srv) => Some(srv.clone()),
            _ => None,
        });
        let srv: Vec<_> = srv.collect();
        if !srv.is_empty() {
            return Ok(Answer::Records(srv));
        }
        let target = of_name(&name).find_map(|record| match &record.data {
            RData::CNAME(cname) => Some(cname.0.clone()),
            _ => None,
        });
        let Some(target) = target else {
            return Ok(if is_referral(message) {
                Answer::Failed(NameServerError::Referral)
            } else {
                Answer::NoRecords
            });
        };
        name = target;
    }
    let text = format!("more than {MAX_CNAMES} CNAMEs in a row");
    Err(Unread::Malformed(text))
}

/// Whether the server does not know, and names servers that would (RFC 2308 section 2.2).
fn is_referral(message: &Message) -> bool {
    let has = |kind| {
        let mut authorities = message.authorities.iter();
        authorities.any(|record| record.record_type() == kind)
    };
    message.answers.is_empty()
        && !message.metadata.authoritative
        && has(RecordType::NS)
        && !has(RecordType::SOA)
}

fn malformed(error: impl ToString) -> Unread {
    Unread::Malformed(error.to_string())
}

const MAX_CNAMES: usize = 16;
