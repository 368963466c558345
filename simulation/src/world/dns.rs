//! DNS: name servers that know the records of one name, tell lies, or say nothing.

use super::{ClientId, Host as Place, World, queue::Happening};
use bytes::Bytes;
use chronicle_connection::{
    DnsTransport, Endpoint, Failure, FailureKind, Host, Id, Reply, SrvRecord,
};
use hickory_proto::{
    op::{Message, ResponseCode},
    rr::{Name, RData, Record, RecordType, rdata::SRV},
};
use std::{
    cmp::Reverse,
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

/// Names a name server of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameServerId(usize);

impl NameServerId {
    /// Where it listens.
    pub fn endpoint(self) -> Endpoint {
        // 256 name servers have an address of their own.
        let [.., last] = (self.0 + 1).to_be_bytes();
        Endpoint::new(Host::Ip(IpAddr::V4(Ipv4Addr::new(10, 53, 0, last))), 53)
    }
}

/// How a name server behaves; `Default` is a good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DnsFaults {
    /// What comes in place of the right answer.
    pub answer: Option<DnsAnswer>,
    /// What somebody else sends in the name of the server, just before it does.
    pub forgery: Option<Forgery>,
    /// Answers over UDP are cut short, however small they are.
    pub truncates: bool,
    /// Answers questions with EDNS by a bare FORMERR, as servers from before EDNS do.
    pub no_edns: bool,
    /// Waits for so long before each answer.
    pub delay: Duration,
}

/// What comes in place of the right answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsAnswer {
    /// Nothing.
    Nothing,
    /// NXDOMAIN, with authority: the name does not exist.
    NoSuchName,
    /// The name is there, without records.
    NoRecords,
    /// SERVFAIL.
    ServerFailure,
    /// REFUSED.
    Refused,
    /// Bytes that are no message.
    Garbage,
    /// The server cannot be asked.
    Fails(FailureKind),
}

/// A datagram that is not from the name server. One with another sender than the server never gets
/// through an adapter, so there is none here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgery {
    /// With another id than the question's.
    OtherId,
    /// With the records of another name.
    OtherName,
    /// With another type of records.
    OtherType,
    /// A question, not an answer.
    Question,
}

/// The name servers of a world, and what they know.
#[derive(Debug, Clone, Default)]
pub(super) struct Dns {
    servers: Vec<DnsFaults>,
    name: String,
    records: Vec<SrvRecord>,
    /// What clients can have made of the records, those of before included.
    lists: Vec<Vec<SrvRecord>>,
    /// Clients cannot find out which name servers there are.
    is_unconfigured: bool,
}

impl World {
    /// Adds a name server; the platform of every client is configured to use all of them, in order.
    pub fn add_name_server(&mut self) -> NameServerId {
        self.dns.servers.push(DnsFaults::default());
        NameServerId(self.dns.servers.len() - 1)
    }

    /// Sets the servers of a name such as `cluster.test`, from the next question on. Every name
    /// server knows them, and no other name.
    pub fn set_records(&mut self, name: &str, records: Vec<SrvRecord>) {
        self.note("dns", &format!("{name} has {} records", records.len()));
        name.clone_into(&mut self.dns.name);
        self.dns.lists.push(in_order(&records));
        self.dns.records = records;
    }

    /// Sets how a name server behaves from the next question on.
    ///
    /// # Panics
    /// Where it belongs to another world.
    pub fn set_dns_faults(&mut self, server: NameServerId, faults: DnsFaults) {
        self.note(server.endpoint().to_string(), &format!("{faults:?}"));
        self.dns.servers[server.0] = faults;
    }

    /// Sets whether clients can find out which name servers there are.
    pub fn set_dns_configured(&mut self, is_configured: bool) {
        self.note("dns", &format!("configured: {is_configured}"));
        self.dns.is_unconfigured = !is_configured;
    }

    pub(super) fn tell_name_servers(&mut self, client: ClientId, id: Id) {
        if self.dns.is_unconfigured {
            let failure = Failure::new(FailureKind::Dns, "no name servers are configured");
            return self.reply_in(client, id, Reply::Failed(failure), Duration::ZERO);
        }
        let servers = (0..self.dns.servers.len()).map(|index| NameServerId(index).endpoint());
        let reply = Reply::NameServers(servers.collect());
        self.reply_in(client, id, reply, Duration::ZERO);
    }

    /// A question to a name server; what comes back arrives a round trip later.
    pub(super) fn ask_name_server(
        &mut self,
        client: ClientId,
        id: Id,
        to: &Endpoint,
        transport: DnsTransport,
        question: &Bytes,
    ) {
        let mut servers = (0..self.dns.servers.len()).map(NameServerId);
        let Some(server) = servers.find(|server| server.endpoint() == *to) else {
            // Over UDP nobody says that there is nobody.
            if transport == DnsTransport::Tcp {
                let failure = Failure::new(FailureKind::Unreachable, "no such name server");
                self.reply_in(client, id, Reply::Failed(failure), Duration::ZERO);
            }
            return;
        };
        let (here, there) = (Place::Client(client), Place::NameServer(server));
        // Nobody sends it again: who asks asks once more.
        if self.faults.cuts(here, there) || self.faults.cuts(there, here) {
            return;
        }
        let faults = self.dns.servers[server.0];
        let delay = faults.delay + self.trip(here, there);
        let forgery = faults.forgery.filter(|_| transport == DnsTransport::Udp);
        if let Some(forged) = forgery.and_then(|forgery| self.dns.forge(question, forgery)) {
            self.reply_in(client, id, Reply::Message(forged.into()), Duration::ZERO);
        }
        if let Some(reply) = self.dns.answer(question, faults, transport) {
            self.reply_in(client, id, reply, delay);
        }
    }

    fn reply_in(&mut self, client: ClientId, id: Id, reply: Reply, delay: Duration) {
        let here = Place::Client(client);
        let at = self.now + self.trip(here, here) + delay;
        let happening = Happening::ReplyArrives {
            client,
            id,
            reply,
            via: None,
        };
        self.plan(at, happening);
    }

    /// The rule of DNS: the servers of a lookup are those of some answer that was whole, in order.
    pub(super) fn must_have_told(&mut self, client: ClientId, records: &[SrvRecord]) {
        if !self.dns.lists.iter().any(|list| list == records) {
            let found: Vec<_> = records.iter().map(SrvRecord::to_string).collect();
            let found = found.join(", ");
            self.breaks(
                client,
                format!("found servers that DNS never told so: {found}"),
            );
        }
    }

    /// Whether no record ever named this host: only a forgery does.
    pub(super) fn is_forged(to: &Endpoint) -> bool {
        matches!(&to.host, Host::Name(name) if name == FORGED)
    }
}

impl Dns {
    fn answer(
        &self,
        question: &Bytes,
        faults: DnsFaults,
        transport: DnsTransport,
    ) -> Option<Reply> {
        let question = Message::from_vec(question).ok()?;
        let limit = usize::from(question.max_payload());
        let mut answer = question.into_response();
        if faults.no_edns && answer.edns.is_some() {
            answer.queries.clear();
            answer.edns = None;
            answer.metadata.response_code = ResponseCode::FormErr;
            return encoded(&answer);
        }
        answer.metadata.response_code = match faults.answer {
            None if !self.is_known(&answer) => ResponseCode::NXDomain,
            None => {
                answer.answers = self
                    .records
                    .iter()
                    .filter_map(|one| self.srv(one))
                    .collect();
                ResponseCode::NoError
            }
            Some(DnsAnswer::Nothing) => return None,
            Some(DnsAnswer::NoSuchName) => ResponseCode::NXDomain,
            Some(DnsAnswer::NoRecords) => ResponseCode::NoError,
            Some(DnsAnswer::ServerFailure) => ResponseCode::ServFail,
            Some(DnsAnswer::Refused) => ResponseCode::Refused,
            Some(DnsAnswer::Garbage) => {
                return Some(Reply::Message(Bytes::from_static(b"this is no message")));
            }
            Some(DnsAnswer::Fails(kind)) => {
                return Some(Reply::Failed(Failure::new(kind, "as told")));
            }
        };
        let whole = answer.to_vec().ok()?;
        if transport == DnsTransport::Udp && (faults.truncates || whole.len() > limit) {
            answer.metadata.truncation = true;
            // Something is left, as with real servers; whoever uses it is wrong.
            answer.answers.truncate(1);
        }
        encoded(&answer)
    }

    /// What somebody sends who does not see the question, or sends it too late.
    fn forge(&self, question: &Bytes, forgery: Forgery) -> Option<Vec<u8>> {
        let question = Message::from_vec(question).ok()?;
        let mut forged = question.clone().into_response();
        let evil = Name::from_ascii(format!("{FORGED}.")).ok()?;
        let owner = match forgery {
            Forgery::OtherName => Name::from_ascii("_chronicle._tcp.another.test.").ok()?,
            Forgery::OtherId | Forgery::OtherType | Forgery::Question => self.owner()?,
        };
        match forgery {
            Forgery::OtherId => forged.metadata.id = !forged.metadata.id,
            Forgery::OtherName => {
                for query in &mut forged.queries {
                    query.set_name(owner.clone());
                }
            }
            Forgery::OtherType => {
                for query in &mut forged.queries {
                    query.set_query_type(RecordType::A);
                }
            }
            Forgery::Question => forged = question,
        }
        let srv = RData::SRV(SRV::new(0, 0, chronicle_connection::DEFAULT_PORT, evil));
        forged.add_answer(Record::from_rdata(owner, TTL, srv));
        forged.to_vec().ok()
    }

    fn is_known(&self, asked: &Message) -> bool {
        let query = asked.queries.first();
        query.is_some_and(|query| {
            self.owner().as_ref() == Some(query.name()) && query.query_type() == RecordType::SRV
        })
    }

    fn owner(&self) -> Option<Name> {
        Name::from_ascii(format!("_chronicle._tcp.{}.", self.name)).ok()
    }

    fn srv(&self, record: &SrvRecord) -> Option<Record> {
        let Host::Name(host) = &record.server.host else {
            return None;
        };
        let target = Name::from_ascii(format!("{host}.")).ok()?;
        let srv = SRV::new(record.priority, record.weight, record.server.port, target);
        Some(Record::from_rdata(self.owner()?, TTL, RData::SRV(srv)))
    }
}

fn encoded(message: &Message) -> Option<Reply> {
    let bytes = message.to_vec().ok()?;
    Some(Reply::Message(bytes.into()))
}

/// What a client has to make of records: those with a host, by priority, then the heavier first, then
/// as they came; each server once, and no more than are used.
fn in_order(records: &[SrvRecord]) -> Vec<SrvRecord> {
    let mut sorted = records.to_vec();
    sorted.retain(|one| matches!(&one.server.host, Host::Name(name) if !name.is_empty()));
    sorted.retain(|one| one.server.port != 0);
    sorted.sort_by_key(|one| (one.priority, Reverse(one.weight)));
    let mut servers = BTreeSet::new();
    sorted.retain(|one| servers.insert(one.server.clone()));
    sorted.truncate(MOST_USED);
    sorted
}

/// As many as a connection string may list.
const MOST_USED: usize = 64;

/// The target of forged records.
const FORGED: &str = "forged.test";

/// Seconds. Nobody may care.
const TTL: u32 = 3600;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Setup, endpoint};
    use std::time::Instant;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the edge of virtual time")]
    fn whoever_finds_other_servers_than_dns_tells_breaks_a_rule() {
        let record = |name: &str, priority, weight| SrvRecord {
            server: endpoint(name),
            priority,
            weight,
        };
        let [light, heavy, last] = [record("s1", 1, 1), record("s2", 1, 5), record("s3", 2, 9)];
        let told = vec![
            last.clone(),
            light.clone(),
            record("", 0, 0),
            heavy.clone(),
            heavy.clone(),
        ];
        let right = vec![heavy, light, last];
        let mut wrong = vec![told, right[..1].to_vec(), Vec::new()];
        wrong.push(right.iter().cloned().rev().collect());
        let find = |list: &Vec<SrvRecord>| {
            let mut world = World::new(Instant::now(), 1);
            world.add_name_server();
            world.set_records("cluster.test", wrong[0].clone());
            assert_eq!(world.dns.lists, std::slice::from_ref(&right));
            world.dns.lists = vec![list.clone()];
            let client = world.add_client(Setup::new("chronicle+srv://cluster.test"));
            world.connect(client);
            world.try_run_for(Duration::from_secs(2))
        };
        assert_eq!(find(&right), Ok(()));
        for list in &wrong {
            let violation = find(list).unwrap_err();
            assert!(violation.rule.contains("never told"), "{violation}");
        }
    }
}
