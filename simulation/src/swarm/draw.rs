//! Draws a scenario.

use super::{
    Action, Choice, ClientNo, ClientPlan, Finds, Proof, Scenario, ServerNo, ServerPlan, Speech,
    Ways, Wrong,
};
use crate::{Disorder, DnsAnswer, DnsFaults, Fault, Forgery, Reachable, Told};
use chronicle_connection::{Code, FailureKind, Request, Status, TlsFailure};
use chronicle_reference_server::model::{Age, FirstKeepAlive};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};
use std::time::Duration;

impl Scenario {
    /// The scenario of a seed. The same seed gives the same scenario, as long as this code stays as
    /// it is.
    pub fn draw(seed: u64) -> Self {
        let mut dice = Dice(ChaCha8Rng::seed_from_u64(seed ^ SALT));
        let servers = 1 + dice.below(8);
        let clients = 1 + dice.below(40);
        let authentication = dice.chance(40).then(|| dice.chance(50));
        let has_dns = dice.chance(40);
        let name_servers = if has_dns { 1 + dice.below(3) } else { 0 };
        let has_curses = servers > 1 && dice.chance(40);
        let differs = dice.chance(25);
        let all: Vec<_> = (0..servers).map(ServerNo).collect();
        let mut server_plans: Vec<_> = all.iter().map(|_| dice.server(differs)).collect();
        if has_curses {
            let cursed = 1 + dice.below((servers - 1).min(3));
            for ServerNo(index) in dice.some(&all, cursed) {
                server_plans[index].curse = Some(dice.curse());
            }
        }
        let length = dice.between(Duration::from_secs(10), Duration::from_secs(150));
        let listed = match dice.some_or_all(&all) {
            listed if dice.chance(97) => listed,
            _ => Vec::new(),
        };
        let longest = *dice.pick(&[1, 5, 30, 200]);
        let client_plans = (0..clients)
            .map(|_| dice.client(&all, name_servers, authentication.is_some(), length))
            .collect();
        let mut scenario = Self {
            seed,
            latency: (Duration::from_micros(100), Duration::from_millis(longest)),
            has_twins: dice.chance(10),
            servers: server_plans,
            authentication,
            token_life: *dice.pick(&[20, 60, 3600].map(Duration::from_secs)),
            name_servers,
            listed,
            clients: client_plans,
            actions: Vec::new(),
            length,
        };
        scenario.actions = dice.actions(&scenario);
        scenario
    }
}

/// The kinds of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    Crashes,
    Farewells,
    StoppedServers,
    SlowHosts,
    WrongAnswers,
    UnreachableServers,
    SilentServers,
    BadTokens,
    Upgrades,
    Partitions,
    LostTransports,
    StoppedClients,
    Commands,
    BadDns,
    ChangingDns,
    Disorder,
}

const TROUBLES: [Trouble; 16] = [
    Trouble::Crashes,
    Trouble::Farewells,
    Trouble::StoppedServers,
    Trouble::SlowHosts,
    Trouble::WrongAnswers,
    Trouble::UnreachableServers,
    Trouble::SilentServers,
    Trouble::BadTokens,
    Trouble::Upgrades,
    Trouble::Partitions,
    Trouble::LostTransports,
    Trouble::StoppedClients,
    Trouble::Commands,
    Trouble::BadDns,
    Trouble::ChangingDns,
    Trouble::Disorder,
];

struct Dice(ChaCha8Rng);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        (self.0.next_u64() % bound.max(1) as u64) as usize
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.0.next_u64() % 100 < percent
    }

    fn between(&mut self, shortest: Duration, longest: Duration) -> Duration {
        let span = (longest - shortest).as_micros() as u64;
        shortest + Duration::from_micros(self.0.next_u64() % (span + 1))
    }

    fn seconds(&mut self, most: u64) -> Duration {
        self.between(Duration::from_millis(100), Duration::from_secs(most))
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    fn some<T: Clone>(&mut self, items: &[T], count: usize) -> Vec<T> {
        let mut items = items.to_vec();
        while items.len() > count {
            items.remove(self.below(items.len()));
        }
        items
    }

    /// At least one.
    fn some_or_all<T: Clone>(&mut self, items: &[T]) -> Vec<T> {
        let count = match self.chance(60) {
            true => items.len(),
            false => 1 + self.below(items.len()),
        };
        self.some(items, count)
    }

    fn server(&mut self, differs: bool) -> ServerPlan {
        ServerPlan {
            age: match self.below(10) {
                0..7 => Age::Current,
                7 | 8 => Age::WithoutCheck,
                _ if differs => Age::WithoutCheckAndDescriptors,
                _ => Age::Current,
            },
            speech: match differs && self.chance(50) {
                true => self.differs(),
                false => Speech::Fits,
            },
            first_keep_alive: match self.chance(70) {
                true => FirstKeepAlive::AtOnce,
                false => FirstKeepAlive::AfterInterval,
            },
            interval: *self.pick(&[500, 1000, 1000, 1000, 2000].map(Duration::from_millis)),
            evict_check: *self.pick(&[1, 2000, 2000, 5000].map(Duration::from_millis)),
            checks_callers: self.chance(20),
            curse: None,
        }
    }

    fn differs(&mut self) -> Speech {
        let says_yes = self.chance(30);
        Speech::Differs { says_yes }
    }

    /// Something that keeps every client from staying.
    fn curse(&mut self) -> Wrong {
        let unavailable = || Fault::Status(Status::grpc(Code::Unavailable, "starting"));
        match self.below(9) {
            0 => Wrong::Dialled(Reachable::Refuses),
            1 => Wrong::Dialled(Reachable::Hangs),
            2 => Wrong::Dialled(Reachable::Fails(FailureKind::Tls(TlsFailure::Expired))),
            3 => Wrong::Asked(Request::CheckCompatibility, unavailable()),
            4 => Wrong::Asked(Request::Connect, unavailable()),
            5 => Wrong::Asked(Request::Connect, Fault::Hangs),
            6 => Wrong::Asked(Request::Connect, Fault::Fails(FailureKind::Reset)),
            7 => Wrong::Asked(Request::KeepAlive, Fault::Hangs),
            _ => Wrong::Silent,
        }
    }

    fn client(
        &mut self,
        servers: &[ServerNo],
        name_servers: usize,
        are_asked: bool,
        length: Duration,
    ) -> ClientPlan {
        let right = match are_asked {
            true => *self.pick(&[Proof::Key, Proof::Secret, Proof::Secret, Proof::Secret]),
            false => *self.pick(&[Proof::None, Proof::None, Proof::None, Proof::Key]),
        };
        let any = [
            Proof::None,
            Proof::Key,
            Proof::WrongKey,
            Proof::Secret,
            Proof::WrongSecret,
        ];
        ClientPlan {
            starts: Some(match self.chance(60) {
                true => self.seconds(2),
                false => self.between(Duration::ZERO, length),
            }),
            finds: match name_servers > 0 && self.chance(60) {
                true => Finds::Name {
                    asks: self.chance(30).then(|| self.below(name_servers)),
                },
                false => Finds::List(self.some_or_all(servers)),
            },
            choice: *self.pick(&[
                Choice::LeastConnections,
                Choice::LeastConnections,
                Choice::LeastConnections,
                Choice::LeastOf(2),
                Choice::RoundRobin,
                Choice::Random,
                Choice::First,
            ]),
            proof: match self.chance(90) {
                true => right,
                false => *self.pick(&any),
            },
            skips_check: self.chance(10),
            connect_timeout: match self.chance(70) {
                true => None,
                false => Some(*self.pick(&[5, 30, 30].map(Duration::from_secs))),
            },
            ceiling: *self.pick(&[5, 30, 30].map(Duration::from_secs)),
            has_jitter: self.chance(80),
            has_debugger: self.chance(10),
        }
    }

    fn actions(&mut self, scenario: &Scenario) -> Vec<(Duration, Action)> {
        let share = *self.pick(&[10, 30, 60]);
        let troubles: Vec<_> = TROUBLES
            .into_iter()
            .filter(|_| self.chance(share))
            .collect();
        if troubles.is_empty() {
            return Vec::new();
        }
        let most = *self.pick(&[3, 12, 40, 100]);
        let count = self.below(most);
        let mut actions = Vec::new();
        for _ in 0..count {
            let at = self.between(Duration::ZERO, scenario.length);
            let trouble = *self.pick(&troubles);
            for (after, action) in self.trouble(trouble, scenario) {
                actions.push((at + after, action));
            }
        }
        actions.retain(|(at, _)| *at < scenario.length);
        actions.sort_by_key(|(at, _)| *at);
        actions
    }

    /// What happens at first, and after a while.
    fn trouble(&mut self, trouble: Trouble, scenario: &Scenario) -> Vec<(Duration, Action)> {
        let server = ServerNo(self.below(scenario.servers.len()));
        let client = ClientNo(self.below(scenario.clients.len()));
        let while_ = self.seconds(30);
        let briefly = self.seconds(12);
        let now = |action| vec![(Duration::ZERO, action)];
        let and_back = |action, back| vec![(Duration::ZERO, action), (while_, back)];
        match trouble {
            Trouble::Crashes => match self.chance(30) {
                true => now(Action::Restart(server)),
                false => and_back(Action::Crash(server), Action::Start(server)),
            },
            Trouble::Farewells => now(match self.below(3) {
                0 => Action::GoAway(server, 0),
                1 => Action::GoAway(server, 2),
                _ => Action::FinishStreams(server, *self.pick(&CODES)),
            }),
            Trouble::StoppedServers => now(Action::PauseServer(server, briefly)),
            Trouble::SlowHosts => {
                let by = self.seconds(4);
                match self.chance(50) {
                    true => and_back(
                        Action::SlowServer(server, by),
                        Action::SlowServer(server, Duration::ZERO),
                    ),
                    false => and_back(
                        Action::SlowClient(client, by),
                        Action::SlowClient(client, Duration::ZERO),
                    ),
                }
            }
            Trouble::WrongAnswers => {
                let request = *self.pick(&REQUESTS);
                let wrong = Wrong::Asked(request, self.fault(request));
                and_back(Action::GoesWrong(server, wrong), Action::GoesRight(server))
            }
            Trouble::UnreachableServers => {
                let wrong = Wrong::Dialled(*self.pick(&[
                    Reachable::Refuses,
                    Reachable::Hangs,
                    Reachable::Fails(FailureKind::Tls(TlsFailure::WrongName)),
                    Reachable::Fails(FailureKind::Dns),
                    Reachable::Fails(FailureKind::Unreachable),
                ]));
                and_back(Action::GoesWrong(server, wrong), Action::Start(server))
            }
            Trouble::SilentServers => and_back(
                Action::GoesWrong(server, Wrong::Silent),
                Action::GoesRight(server),
            ),
            Trouble::BadTokens => match self.below(3) {
                0 => now(Action::ForgetTokens(server)),
                1 => now(Action::RefreshToken(client, self.below(4) as u64)),
                _ => {
                    let wrong = Wrong::Asked(Request::Token, self.fault(Request::Token));
                    and_back(Action::GoesWrong(server, wrong), Action::GoesRight(server))
                }
            },
            Trouble::Upgrades => match scenario.servers[server.0].speech {
                Speech::Fits => and_back(
                    Action::Speak(server, self.differs()),
                    Action::Speak(server, Speech::Fits),
                ),
                Speech::Differs { .. } => Vec::new(),
            },
            Trouble::Partitions => {
                let servers: Vec<_> = (0..scenario.servers.len()).map(ServerNo).collect();
                let clients: Vec<_> = (0..scenario.clients.len()).map(ClientNo).collect();
                let (servers, clients) = (self.some_or_all(&servers), self.some_or_all(&clients));
                let ways = *self.pick(&[Ways::Both, Ways::Up, Ways::Down]);
                and_back(
                    Action::Partition(servers, clients, ways),
                    Action::HealPartitions,
                )
            }
            Trouble::LostTransports => now(match self.below(4) {
                0 => Action::BlackHole(client),
                1 => Action::LoseTransport(client, Told::Both),
                2 => Action::LoseTransport(client, Told::Client),
                _ => Action::LoseTransport(client, Told::Server),
            }),
            Trouble::StoppedClients => now(match self.chance(50) {
                true => Action::Pause(client, briefly),
                false => Action::Suspend(client, briefly),
            }),
            Trouble::Commands => now(match self.below(8) {
                0 => Action::Close(client),
                1 | 2 => Action::Tick(client),
                _ => Action::Connect(client),
            }),
            Trouble::BadDns if scenario.name_servers > 0 => {
                if self.chance(15) {
                    return and_back(Action::Unconfigured(true), Action::Unconfigured(false));
                }
                let index = self.below(scenario.name_servers);
                let faults = self.dns_faults();
                and_back(
                    Action::Dns(index, faults),
                    Action::Dns(index, DnsFaults::default()),
                )
            }
            Trouble::ChangingDns if scenario.name_servers > 0 => {
                let servers: Vec<_> = (0..scenario.servers.len()).map(ServerNo).collect();
                let mut servers = self.some_or_all(&servers);
                if self.chance(10) {
                    servers.clear();
                }
                now(Action::List(servers))
            }
            Trouble::BadDns | Trouble::ChangingDns => Vec::new(),
            Trouble::Disorder => {
                let disorder = Disorder {
                    reordered: *self.pick(&[0, 10, 50]),
                    duplicated: *self.pick(&[0, 5, 30]),
                    late: *self.pick(&[0, 2, 10]),
                    by: self.seconds(12),
                };
                and_back(
                    Action::Disorder(disorder),
                    Action::Disorder(Disorder::default()),
                )
            }
        }
    }

    fn dns_faults(&mut self) -> DnsFaults {
        DnsFaults {
            answer: match self.chance(60) {
                true => Some(*self.pick(&[
                    DnsAnswer::Nothing,
                    DnsAnswer::NoSuchName,
                    DnsAnswer::NoRecords,
                    DnsAnswer::ServerFailure,
                    DnsAnswer::Refused,
                    DnsAnswer::Garbage,
                    DnsAnswer::Fails(FailureKind::Unreachable),
                ])),
                false => None,
            },
            forgery: match self.chance(50) {
                true => Some(*self.pick(&[
                    Forgery::OtherId,
                    Forgery::OtherName,
                    Forgery::OtherType,
                    Forgery::Question,
                ])),
                false => None,
            },
            truncates: self.chance(30),
            no_edns: self.chance(20),
            delay: match self.chance(30) {
                true => self.seconds(4),
                false => Duration::ZERO,
            },
        }
    }

    fn fault(&mut self, request: Request) -> Fault {
        let body = match request {
            Request::Count => *self.pick(&["", "-1", "<html>", "18446744073709551615", "1e3"]),
            Request::Token => *self.pick(&[
                r#"{"error":"invalid_client"}"#,
                r#"{"error":"chronicle-dev-secret"}"#,
                r#"{"access_token":"","expires_in":60}"#,
                r#"{"access_token":"an-unknown-token","expires_in":"30"}"#,
                r#"{"access_token":"an-unknown-token","expires_in":0}"#,
            ]),
            Request::Reserve
            | Request::CheckCompatibility
            | Request::GetDescriptorSet
            | Request::GetVersionInfo
            | Request::Connect
            | Request::KeepAlive => "",
        };
        match self.below(6) {
            0 => Fault::Hangs,
            1 => Fault::Slow(self.seconds(12)),
            2 => Fault::Fails(*self.pick(&[
                FailureKind::Reset,
                FailureKind::Closed,
                FailureKind::Protocol,
                FailureKind::TooLarge,
            ])),
            3 | 4 => Fault::Http(
                *self.pick(&[200, 204, 302, 400, 401, 403, 404, 429, 500, 503]),
                body.to_owned(),
            ),
            _ => match request {
                Request::Count | Request::Reserve | Request::Token => {
                    Fault::Http(200, body.to_owned())
                }
                // An acknowledgement of what never was seen is a lie that nobody can find out.
                Request::CheckCompatibility
                | Request::GetDescriptorSet
                | Request::GetVersionInfo
                | Request::Connect
                | Request::KeepAlive => Fault::Status(Status::grpc(*self.pick(&CODES), "as drawn")),
            },
        }
    }
}

const CODES: [Code; 8] = [
    Code::Cancelled,
    Code::Unknown,
    Code::DeadlineExceeded,
    Code::PermissionDenied,
    Code::Unimplemented,
    Code::Internal,
    Code::Unavailable,
    Code::Unauthenticated,
];

const REQUESTS: [Request; 8] = [
    Request::Count,
    Request::Reserve,
    Request::Token,
    Request::CheckCompatibility,
    Request::GetDescriptorSet,
    Request::GetVersionInfo,
    Request::Connect,
    Request::KeepAlive,
];

/// So that the scenario and its world draw different numbers.
const SALT: u64 = 0x5ca1_ab1e_0dd5_eed5;
