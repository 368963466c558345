//! Plays a fleet in a world.

use super::{
    Fleet, FleetError, Report, Sample, Scenario, Spread,
    plan::{Plan, Step},
    watch::Watch,
};
use crate::{
    Checks, ClientId, Host, Latency, Load, Network, PartitionId, Reachable, Recording, ServerId,
    Setup, Violation, World,
};
use chronicle_connection::{Command, Jitter};
use chronicle_reference_server::model::ModelConfig;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};
use std::time::{Duration, Instant};

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What has passed, in virtual time.
    pub done: Duration,
    /// How long the run is, in virtual time.
    pub total: Duration,
}

impl Fleet {
    /// Plays it. Messages take 1 to 10 ms, one way. `base` is where the world's time starts, and
    /// shows nowhere. `progress` is told a few hundred times how far the run is.
    ///
    /// # Errors
    /// [`FleetError`] for numbers that cannot be simulated, and where a client breaks a rule.
    pub fn run(
        &self,
        base: Instant,
        mut progress: impl FnMut(Progress),
    ) -> Result<Report, FleetError> {
        self.check()?;
        let plan = Plan::of(self);
        let mut run = Run::new(self, base);
        let mut steps = plan.steps.iter().peekable();
        let mut samples = Vec::new();
        for moment in moments(self.scenario, plan.duration) {
            while let Some((at, step)) = steps.next_if(|(at, _)| *at <= moment) {
                run.until(*at)?;
                run.perform(*step)?;
            }
            run.until(moment)?;
            samples.push(run.sample());
            let (done, total) = (moment, plan.duration);
            progress(Progress { done, total });
        }
        let (connecting, reconnecting) = run.watch.times();
        Ok(Report {
            fleet: self.clone(),
            duration: plan.duration,
            outages: plan.outages(),
            marks: plan.marks,
            samples,
            connecting,
            reconnecting,
            new_sessions: run.watch.new_sessions(run.world.session_changes()),
            loads: run.loads(),
            away: self.clients - run.watch.sessions(),
        })
    }

    fn setup(&self, rng: &mut ChaCha8Rng) -> Setup {
        let known = draw(self.servers, self.known_servers(), rng);
        let hosts: Vec<String> = known
            .iter()
            .map(|server| format!("s{}", server + 1))
            .collect();
        let string = format!("chronicle://{}", hosts.join(","));
        let mut setup = Setup::new(&string)
            .strategy(self.balancing.strategy())
            .patient();
        if !self.has_selection_wait {
            setup.timing.selection_wait = Duration::ZERO;
        }
        if !self.has_backoff_jitter {
            setup.backoff.jitter = Jitter::None;
        }
        setup
    }
}

/// Adds clients of as many lists as there are servers, or of one where it has them all. Clients of
/// one list are not next to each other, so that what happens to some happens to clients of all.
fn add_clients(world: &mut World, fleet: &Fleet, rng: &mut ChaCha8Rng) -> Vec<ClientId> {
    let lists = match fleet.known_servers() == fleet.servers {
        true => 1,
        false => fleet.servers.min(fleet.clients),
    };
    let sizes = (0..lists).map(|list| (fleet.clients + list) / lists);
    let groups: Vec<Vec<ClientId>> = sizes
        .map(|size| world.add_clients(size, &fleet.setup(rng)))
        .collect();
    let longest = groups.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest)
        .flat_map(|at| groups.iter().filter_map(move |group| group.get(at)))
        .copied()
        .collect()
}

struct Run {
    world: World,
    clients: Vec<ClientId>,
    servers: Vec<ServerId>,
    is_up: Vec<bool>,
    cuts: Vec<PartitionId>,
    watch: Watch,
}

impl Run {
    fn new(fleet: &Fleet, base: Instant) -> Self {
        let mut world = World::new(base, fleet.seed);
        world.set_recording(Recording::NOTHING);
        world.set_checks(Checks::Books);
        world.set_network(Network {
            latency: Latency::Between(Duration::from_millis(1), Duration::from_millis(10)),
            ..Network::default()
        });
        let model = ModelConfig {
            counts_reservations: fleet.has_reservations,
            ..ModelConfig::default()
        };
        let servers = (0..fleet.servers).map(|_| world.add_server_with(model.clone()));
        let servers: Vec<ServerId> = servers.collect();
        let mut rng = ChaCha8Rng::seed_from_u64(fleet.seed);
        let clients = add_clients(&mut world, fleet, &mut rng);
        Self {
            watch: Watch::new(&clients, servers.clone()),
            clients,
            servers,
            is_up: vec![true; fleet.servers],
            cuts: Vec::new(),
            world,
        }
    }

    fn until(&mut self, moment: Duration) -> Result<(), Violation> {
        let left = moment.saturating_sub(self.world.elapsed());
        self.world.try_run_for(left)
    }

    fn perform(&mut self, step: Step) -> Result<(), Violation> {
        match step {
            Step::Connect(client) => {
                self.watch.look(self.world.session_changes());
                self.watch.starts(client, self.world.elapsed());
                self.world
                    .try_command(self.clients[client], Command::Connect)?;
            }
            Step::Drain(server) => {
                self.is_up[server] = false;
                let id = self.servers[server];
                self.world.set_reachable(id, Reachable::Refuses);
                self.world.go_away(id, 0);
            }
            Step::Crash(server) => {
                self.is_up[server] = false;
                self.world.crash(self.servers[server]);
            }
            Step::Start(server) => {
                self.is_up[server] = true;
                self.world.start(self.servers[server]);
            }
            Step::Cut => self.cut(),
            Step::Join => {
                for cut in self.cuts.drain(..) {
                    self.world.heal_partition(cut);
                }
            }
        }
        Ok(())
    }

    fn cut(&mut self) {
        let clients = &self.clients[..self.clients.len().div_ceil(2)];
        let servers = &self.servers[..self.servers.len().div_ceil(2)];
        let clients = || clients.iter().copied().map(Host::Client);
        let servers = || servers.iter().copied().map(Host::Server);
        self.cuts.push(self.world.partition(clients(), servers()));
        self.cuts.push(self.world.partition(servers(), clients()));
    }

    fn loads(&self) -> Vec<Vec<Load>> {
        let servers = self.servers.iter();
        servers
            .map(|&server| self.world.server(server).loads().to_vec())
            .collect()
    }

    fn sample(&mut self) -> Sample {
        self.watch.look(self.world.session_changes());
        let servers = self.servers.iter().zip(&self.is_up);
        let up = servers.filter(|(_, is_up)| **is_up);
        let counts: Vec<usize> = up
            .map(|(&server, _)| self.world.server(server).registered())
            .collect();
        Sample {
            at: self.world.elapsed(),
            sessions: self.watch.sessions(),
            away: self.watch.away(),
            spread: Spread::of(&counts),
        }
    }
}

/// The servers that a client knows: all, or as many as a connection takes, drawn at random.
fn draw(servers: usize, known: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let mut all: Vec<usize> = (0..servers).collect();
    if known < servers {
        for place in 0..known {
            let left = (servers - place) as u64;
            all.swap(place, place + (rng.next_u64() % left) as usize);
        }
        all.truncate(known);
    }
    all
}

/// When samples are taken: at most a few hundred times. A cold start is over in a moment, and is
/// looked at closely.
fn moments(scenario: Scenario, duration: Duration) -> Vec<Duration> {
    let even = duration.as_millis().div_ceil(600).next_multiple_of(100) as u64;
    let close_until = match scenario {
        Scenario::ColdStart => 5_000,
        Scenario::RollingRestart | Scenario::Crash | Scenario::Partition | Scenario::Flap => 0,
    };
    let mut moments = vec![Duration::ZERO];
    let mut at = 0;
    while u128::from(at) < duration.as_millis() {
        at += if at < close_until { 20 } else { even };
        moments.push(Duration::from_millis(at).min(duration));
    }
    moments
}
