//! Plays a scenario in a world.

use super::{
    Action, Choice, ClientNo, ClientPlan, Finds, Proof, Scenario, ServerNo, ServerPlan, Speech,
    Summary, Ways, Wrong, judge,
};
use crate::{
    Checks, ClientId, Disorder, DnsFaults, Host, Latency, NameServerId, Network, PartitionId,
    Recording, ServerId, Setup, Trace, Violation, World, endpoint,
};
use chronicle_connection::{Command, Endpoint, Jitter, Selector, SrvRecord, Status, Strategy};
use chronicle_reference_server::model::{Age, Authentication, ModelConfig, Verdict};
use rand_core::Rng;
use std::{
    num::NonZeroUsize,
    time::{Duration, Instant},
};

/// A scenario in its world.
pub(super) struct Play<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) world: World,
    servers: Vec<ServerId>,
    pub(super) clients: Vec<ClientId>,
    name_servers: Vec<NameServerId>,
    partitions: Vec<PartitionId>,
    /// When the last process that is stopped goes on.
    pub(super) stopped_until: Duration,
    rule: Rule,
}

/// A rule beside those of the world: gives who breaks it, and how.
pub(super) type Rule = fn(&World) -> Option<(ClientId, String)>;

impl<'a> Play<'a> {
    pub(super) fn new(base: Instant, scenario: &'a Scenario) -> Self {
        let mut world = World::new(base, scenario.seed);
        world.set_recording(Recording {
            events: true,
            ..Recording::NOTHING
        });
        world.set_checks(match scenario.has_twins {
            true => Checks::Every,
            false => Checks::Books,
        });
        let (shortest, longest) = scenario.latency;
        world.set_network(Network {
            latency: Latency::Between(shortest, longest),
            ..Network::default()
        });
        let servers = scenario.servers.iter().enumerate();
        let servers =
            servers.map(|(index, plan)| world.add_server_with(scenario.model(index, plan)));
        let servers = servers.collect();
        let name_servers = (0..scenario.name_servers).map(|_| world.add_name_server());
        let name_servers = name_servers.collect();
        let clients = scenario
            .clients
            .iter()
            .map(|plan| world.add_client(scenario.setup(plan)));
        let clients = clients.collect();
        let mut play = Self {
            scenario,
            world,
            servers,
            clients,
            name_servers,
            partitions: Vec::new(),
            stopped_until: Duration::ZERO,
            rule: |_| None,
        };
        play.curse();
        play.list(&scenario.listed);
        play
    }

    /// With the trace of everything.
    pub(super) fn traced(mut self) -> Self {
        self.world.set_recording(Recording::default());
        self
    }

    /// With another rule.
    pub(super) fn under(mut self, rule: Rule) -> Self {
        self.rule = rule;
        self
    }

    pub(super) fn trace(&self) -> &Trace {
        self.world.trace()
    }

    pub(super) fn run(&mut self) -> Result<Summary, Violation> {
        for (at, step) in self.timeline() {
            self.pass_until(at)?;
            match step {
                Step::Starts(client) => self.world.try_command(client, Command::Connect)?,
                Step::Happens(action) => self.happens(action)?,
            }
        }
        self.pass_until(self.scenario.length)?;
        self.heal();
        judge::judge(self)
    }

    /// Lets time pass, and looks whether the rule still holds, once a second.
    pub(super) fn pass_until(&mut self, at: Duration) -> Result<(), Violation> {
        while let Some(left) = at.checked_sub(self.world.elapsed()) {
            self.world.try_run_for(left.min(Duration::from_secs(1)))?;
            if let Some((client, rule)) = (self.rule)(&self.world) {
                return Err(self.violation(client, rule));
            }
            if left.is_zero() {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn violation(&self, client: ClientId, rule: String) -> Violation {
        Violation::new(&client.to_string(), self.world.elapsed(), rule)
    }

    fn timeline(&self) -> Vec<(Duration, Step<'a>)> {
        let scenario = self.scenario;
        let plans = scenario.clients.iter().zip(&self.clients);
        let starts = plans.filter_map(|(plan, client)| Some((plan.starts?, Step::Starts(*client))));
        let actions = scenario.actions.iter();
        let actions = actions.map(|(at, action)| (*at, Step::Happens(action)));
        let mut timeline: Vec<_> = starts.chain(actions).collect();
        timeline.sort_by_key(|(at, _)| *at);
        timeline
    }

    fn happens(&mut self, action: &Action) -> Result<(), Violation> {
        match action {
            Action::Crash(server) => self.world.crash(self.server(*server)),
            Action::Start(server) => self.start(*server),
            Action::Restart(server) => {
                self.world.crash(self.server(*server));
                self.start(*server);
            }
            Action::GoAway(server, code) => self.world.go_away(self.server(*server), *code),
            Action::FinishStreams(server, code) => {
                let status = Status::grpc(*code, "the stream ends");
                self.world.finish_streams(self.server(*server), &status);
            }
            Action::PauseServer(server, duration) => {
                self.stops(*duration);
                self.world.pause_server(self.server(*server), *duration);
            }
            Action::SlowServer(server, by) => {
                let host = Host::Server(self.server(*server));
                self.world.set_slow(host, *by);
            }
            Action::GoesWrong(server, wrong) => {
                self.goes_wrong(*server, wrong);
                // A fault in place of a curse would lift it for a while.
                if let Some(curse) = &self.scenario.servers[server.0].curse {
                    self.goes_wrong(*server, curse);
                }
            }
            Action::GoesRight(server) => self.goes_right(*server),
            Action::ForgetTokens(server) => self.world.reset_tokens(self.server(*server)),
            Action::Speak(server, speech) => {
                let speech = *speech;
                let server = self.server(*server);
                self.world.reconfigure(server, |model| speak(model, speech));
            }
            Action::SlowClient(client, by) => {
                self.world.set_slow(Host::Client(self.client(*client)), *by);
            }
            Action::BlackHole(client) => self.world.black_hole(self.client(*client)),
            Action::LoseTransport(client, told) => {
                self.world.lose_transport(self.client(*client), *told);
            }
            Action::Pause(client, duration) => {
                self.stops(*duration);
                self.world.pause(self.client(*client), *duration);
            }
            Action::Suspend(client, duration) => {
                self.stops(*duration);
                self.world.suspend(self.client(*client), *duration);
            }
            Action::Close(client) => self.command(*client, Command::Close)?,
            Action::Connect(client) => self.command(*client, Command::Connect)?,
            Action::Tick(client) => self.command(*client, Command::Tick)?,
            Action::RefreshToken(client, rejected) => {
                let rejected = *rejected;
                self.command(*client, Command::RefreshToken { rejected })?;
            }
            Action::Partition(servers, clients, ways) => self.partition(servers, clients, *ways),
            Action::HealPartitions => self.heal_partitions(),
            Action::Dns(server, faults) => self
                .world
                .set_dns_faults(self.name_servers[*server], *faults),
            Action::Unconfigured(is_so) => self.world.set_dns_configured(!is_so),
            Action::List(servers) => self.list(servers),
            Action::Disorder(disorder) => self.world.set_disorder(*disorder),
        }
        Ok(())
    }

    /// A client that was never told to connect is told nothing else either.
    fn command(&mut self, client: ClientNo, command: Command) -> Result<(), Violation> {
        let now = self.world.elapsed();
        let plan = &self.scenario.clients[client.0];
        if plan.starts.is_none_or(|starts| starts > now) {
            return Ok(());
        }
        self.world.try_command(self.client(client), command)
    }

    /// Whoever is cut off from every server is so from name servers, too.
    fn partition(&mut self, servers: &[ServerNo], clients: &[ClientNo], ways: Ways) {
        let name_servers = match servers.len() == self.servers.len() {
            true => self.name_servers.as_slice(),
            false => &[],
        };
        let servers = servers.iter().map(|one| Host::Server(self.server(*one)));
        let name_servers = name_servers.iter().copied().map(Host::NameServer);
        let servers: Vec<_> = servers.chain(name_servers).collect();
        let clients: Vec<_> = clients
            .iter()
            .map(|one| Host::Client(self.client(*one)))
            .collect();
        if matches!(ways, Ways::Both | Ways::Up) {
            let up = self.world.partition(clients.clone(), servers.clone());
            self.partitions.push(up);
        }
        if matches!(ways, Ways::Both | Ways::Down) {
            let down = self.world.partition(servers, clients);
            self.partitions.push(down);
        }
    }

    fn heal_partitions(&mut self) {
        for partition in self.partitions.drain(..) {
            self.world.heal_partition(partition);
        }
    }

    fn start(&mut self, server: ServerNo) {
        let id = self.server(server);
        match &self.scenario.servers[server.0].curse {
            Some(Wrong::Dialled(reachable)) => self.world.set_reachable(id, *reachable),
            Some(Wrong::Asked(..) | Wrong::Silent) | None => self.world.start(id),
        }
    }

    fn goes_wrong(&mut self, server: ServerNo, wrong: &Wrong) {
        let id = self.server(server);
        match wrong {
            Wrong::Asked(request, fault) => self.world.fail(id, *request, fault.clone()),
            Wrong::Dialled(reachable) => self.world.set_reachable(id, *reachable),
            Wrong::Silent => self.world.reconfigure(id, |model| model.silent = true),
        }
    }

    /// As good as a server gets.
    fn goes_right(&mut self, server: ServerNo) {
        let id = self.server(server);
        let plan = &self.scenario.servers[server.0];
        let model = self.scenario.model(server.0, plan);
        self.world.heal(id);
        self.world.reconfigure(id, |now| now.clone_from(&model));
        self.start(server);
        if let Some(curse) = &plan.curse {
            self.goes_wrong(server, curse);
        }
    }

    fn curse(&mut self) {
        for index in 0..self.servers.len() {
            if let Some(curse) = &self.scenario.servers[index].curse {
                self.goes_wrong(ServerNo(index), curse);
            }
        }
    }

    /// Ends all that goes wrong, but for the curses.
    fn heal(&mut self) {
        self.heal_partitions();
        self.world.set_disorder(Disorder::default());
        self.world.set_dns_configured(true);
        for server in self.name_servers.clone() {
            self.world.set_dns_faults(server, DnsFaults::default());
        }
        self.list(&self.scenario.listed);
        for index in 0..self.servers.len() {
            self.world
                .set_slow(Host::Server(self.servers[index]), Duration::ZERO);
            self.goes_right(ServerNo(index));
        }
        for client in self.clients.clone() {
            self.world.set_slow(Host::Client(client), Duration::ZERO);
        }
    }

    fn list(&mut self, servers: &[ServerNo]) {
        let record = |(rank, server): (usize, &ServerNo)| SrvRecord {
            server: endpoint(&format!("{server:?}")),
            priority: (rank / 3) as u16,
            weight: 10 - (rank % 3) as u16,
        };
        // As they come, they are in no order that anybody may rely on.
        let records = servers.iter().enumerate().rev().map(record).collect();
        self.world.set_records(NAME, records);
    }

    fn stops(&mut self, duration: Duration) {
        self.stopped_until = self.stopped_until.max(self.world.elapsed() + duration);
    }

    /// Whether a client has a session with a server that is cursed.
    pub(super) fn has_cursed_server(&self, client: ClientId) -> bool {
        let server = self.world.client(client).server();
        let index = self.servers.iter().position(|one| Some(*one) == server);
        let mut plans = self.clients.iter().zip(&self.scenario.clients);
        let plan = plans.find(|(one, _)| **one == client);
        index
            .zip(plan)
            .is_some_and(|(index, (_, plan))| self.scenario.is_cursed(ServerNo(index), plan))
    }

    fn server(&self, server: ServerNo) -> ServerId {
        self.servers[server.0]
    }

    fn client(&self, client: ClientNo) -> ClientId {
        self.clients[client.0]
    }
}

enum Step<'a> {
    Starts(ClientId),
    Happens(&'a Action),
}

impl Scenario {
    fn model(&self, index: usize, plan: &ServerPlan) -> ModelConfig {
        let mut model = ModelConfig {
            keep_alive_interval: plan.interval,
            first_keep_alive: plan.first_keep_alive,
            evict_check: plan.evict_check,
            age: plan.age,
            authentication: self.authentication.map(|trusts_others| Authentication {
                token_life: self.token_life,
                issuer: format!("issuer{index}"),
                trusts_others,
                anonymous_check: !plan.checks_callers,
                ..Authentication::default()
            }),
            ..ModelConfig::default()
        };
        speak(&mut model, plan.speech);
        model
    }

    fn setup(&self, plan: &ClientPlan) -> Setup {
        let known = Authentication::default();
        let (userinfo, key) = match plan.proof {
            Proof::None => (String::new(), None),
            Proof::Key => (String::new(), Some(known.api_key)),
            Proof::WrongKey => (String::new(), Some("another-key".to_owned())),
            Proof::Secret => (
                format!("{}:{}@", known.client_id, known.client_secret),
                None,
            ),
            Proof::WrongSecret => (format!("{}:another-secret@", known.client_id), None),
        };
        let key = key.map(|key| format!("apiKey={key}"));
        let (mut string, asks) = match &plan.finds {
            Finds::List(servers) => {
                let servers: Vec<_> = servers.iter().map(|server| format!("{server:?}")).collect();
                (format!("chronicle://{userinfo}{}", servers.join(",")), None)
            }
            Finds::Name { asks } => {
                let asks = asks.map(|index| format!("srvNameServer=10.53.0.{}", index + 1));
                (format!("chronicle+srv://{userinfo}{NAME}"), asks)
            }
        };
        for (index, option) in key.into_iter().chain(asks).enumerate() {
            string.push(if index == 0 { '?' } else { '&' });
            string.push_str(&option);
        }
        let mut setup = Setup::new(&string).strategy(match plan.choice {
            Choice::LeastConnections => Strategy::LeastConnections { max_probes: None },
            Choice::LeastOf(count) => Strategy::LeastConnections {
                max_probes: NonZeroUsize::new(count),
            },
            Choice::RoundRobin => Strategy::RoundRobin,
            Choice::Random => Strategy::Random,
            Choice::First => Strategy::Custom(Box::new(First)),
        });
        setup.skip_compatibility_check = plan.skips_check;
        setup.connect_timeout = plan.connect_timeout;
        setup.backoff.ceiling = plan.ceiling;
        if !plan.has_jitter {
            setup.backoff.jitter = Jitter::None;
        }
        setup.client.is_running_with_debugger = plan.has_debugger;
        setup
    }
}

fn speak(model: &mut ModelConfig, speech: Speech) {
    let good = ModelConfig::default().schema;
    (model.verdict, model.schema) = match speech {
        Speech::Fits => (Verdict::Compatible, good),
        Speech::Differs { says_yes } => {
            let finding = "MethodRemoved: a method is gone".to_owned();
            let verdict = match says_yes {
                true => Verdict::CompatibleBut(vec![finding]),
                false => Verdict::Incompatible(vec![finding]),
            };
            (
                verdict,
                good.replace("rpc ConnectionKeepAlive ", "rpc Another "),
            )
        }
    };
}

/// The strategy of somebody who does not care.
#[derive(Debug)]
struct First;

impl Selector for First {
    fn select<'a>(&mut self, candidates: &'a [Endpoint], _: &mut dyn Rng) -> &'a Endpoint {
        &candidates[0]
    }

    fn clone_box(&self) -> Box<dyn Selector> {
        Box::new(Self)
    }
}

/// Whether a server of this age can tell that contracts fit.
pub(super) fn can_compare(age: Age) -> bool {
    match age {
        Age::Current | Age::WithoutCheck => true,
        Age::WithoutCheckAndDescriptors => false,
    }
}

/// The name that DNS knows.
const NAME: &str = "cluster.test";
