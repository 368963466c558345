//! What a scenario does, and when.

use super::{Fleet, Outage, Scenario};
use crate::plural;
use std::time::Duration;

/// Something that is done to a fleet, for the pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// From when.
    pub from: Duration,
    /// Until when.
    pub until: Duration,
    /// What, as a short text.
    pub text: String,
}

/// One thing that is done. Clients and servers are numbered from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A client is told to connect.
    Connect(usize),
    /// A server takes nobody new, and asks its clients to leave.
    Drain(usize),
    /// A server dies.
    Crash(usize),
    /// A server is back, empty.
    Start(usize),
    /// Nothing passes any more between half of the clients and half of the servers.
    Cut,
    /// It does again.
    Join,
}

/// All that is done, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) steps: Vec<(Duration, Step)>,
    pub(super) marks: Vec<Mark>,
    pub(super) duration: Duration,
}

impl Plan {
    pub(super) fn of(fleet: &Fleet) -> Self {
        let mut plan = Self {
            steps: (0..fleet.clients)
                .map(|client| (start_of(fleet, client), Step::Connect(client)))
                .collect(),
            marks: Vec::new(),
            duration: Duration::from_secs(60),
        };
        match fleet.scenario {
            Scenario::ColdStart => {}
            Scenario::RollingRestart => plan.rolling_restart(fleet.servers),
            Scenario::Crash => plan.crash(fleet.servers),
            Scenario::Partition => {
                plan.steps.push((secs(20), Step::Cut));
                plan.steps.push((secs(50), Step::Join));
                plan.mark(
                    20,
                    50,
                    "half of the clients are cut off from half of the servers",
                );
                plan.duration = secs(110);
            }
            Scenario::Flap => plan.flap(),
        }
        plan.steps.sort_by_key(|(at, _)| *at);
        plan
    }

    /// When which server took nobody new.
    pub(super) fn outages(&self) -> Vec<Outage> {
        let mut outages: Vec<Outage> = Vec::new();
        for &(at, step) in &self.steps {
            match step {
                Step::Drain(server) | Step::Crash(server) => {
                    let is_down = |one: &Outage| one.server == server && one.until > at;
                    if !outages.iter().any(is_down) {
                        outages.push(Outage {
                            server,
                            from: at,
                            until: self.duration,
                        });
                    }
                }
                Step::Start(server) => {
                    let mine = outages.iter_mut().rev();
                    if let Some(outage) = mine.into_iter().find(|one| one.server == server) {
                        outage.until = at;
                    }
                }
                Step::Connect(_) | Step::Cut | Step::Join => {}
            }
        }
        outages
    }

    fn rolling_restart(&mut self, servers: usize) {
        let mut at = secs(20);
        for server in 0..servers {
            self.steps.push((at, Step::Drain(server)));
            self.steps.push((at + secs(1), Step::Crash(server)));
            self.steps
                .push((at + Duration::from_millis(3_500), Step::Start(server)));
            at += Duration::from_millis(5_500);
        }
        self.marks.push(Mark {
            from: secs(20),
            until: at,
            text: "one server after the other restarts".to_owned(),
        });
        self.duration = at + secs(30);
    }

    fn crash(&mut self, servers: usize) {
        let dead = servers.div_ceil(3);
        for server in 0..dead {
            self.steps.push((secs(20), Step::Crash(server)));
            self.steps.push((secs(80), Step::Start(server)));
        }
        let are = if dead == 1 { "is" } else { "are" };
        let servers = format!("{servers} {}", plural("server", servers));
        self.mark(20, 80, &format!("{dead} of {servers} {are} down"));
        self.duration = secs(140);
    }

    fn flap(&mut self) {
        for at in (20..80).step_by(6) {
            self.steps.push((secs(at), Step::Crash(0)));
            self.steps.push((secs(at + 3), Step::Start(0)));
        }
        self.mark(20, 80, "s1 goes down and up, and half of the clients start");
        self.duration = secs(120);
    }

    fn mark(&mut self, from: u64, until: u64, text: &str) {
        self.marks.push(Mark {
            from: secs(from),
            until: secs(until),
            text: text.to_owned(),
        });
    }
}

/// A cold start is at one instant. Elsewhere clients start one by one in ten seconds, so that a
/// fleet has settled when something happens to it. A server that flaps is a temptation to those who
/// choose, so half of the fleet does so meanwhile.
fn start_of(fleet: &Fleet, client: usize) -> Duration {
    let share = client as f64 / fleet.clients as f64;
    let seconds = match fleet.scenario {
        Scenario::ColdStart => 0.0,
        Scenario::RollingRestart | Scenario::Crash | Scenario::Partition => share * 10.0,
        Scenario::Flap if share < 0.5 => share * 20.0,
        Scenario::Flap => 20.0 + (share - 0.5) * 120.0,
    };
    Duration::from_micros((seconds * 1e6) as u64)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
