//! Makes a scenario small that breaks a rule.

use super::{
    Action, Choice, Finds, Scenario, ServerNo,
    play::{Play, Rule},
};
use crate::Violation;
use std::time::{Duration, Instant};

/// The smallest scenario that could be found to break the same rule, and how it does: without
/// whatever can be left out of actions, clients, servers and details, one after the other, until
/// nothing can.
///
/// Gives back what it was given where the scenario breaks nothing.
pub fn shrink(base: Instant, scenario: Scenario, violation: Violation) -> (Scenario, Violation) {
    Shrinking::new(base, scenario, violation, |_| None).run()
}

/// The rule of a violation, without what differs from case to case: numbers, and all that stands
/// behind a colon.
pub fn kind(violation: &Violation) -> String {
    let rule = violation.rule.split(": ").next().unwrap_or_default();
    let is_word = |word: &&str| !word.contains(|c: char| c.is_ascii_digit());
    let words: Vec<&str> = rule.split(' ').filter(is_word).collect();
    words.join(" ")
}

pub(super) struct Shrinking {
    base: Instant,
    rule: Rule,
    kind: String,
    best: Scenario,
    violation: Violation,
    /// Runs that may be made still.
    left: u32,
}

impl Shrinking {
    pub(super) fn new(base: Instant, best: Scenario, violation: Violation, rule: Rule) -> Self {
        Self {
            base,
            rule,
            kind: kind(&violation),
            best,
            violation,
            left: MOST_RUNS,
        }
    }

    pub(super) fn run(mut self) -> (Scenario, Violation) {
        loop {
            let before = self.best.clone();
            self.cut_after_the_end();
            self.leave_out(
                |scenario| scenario.actions.len(),
                |scenario, from, to| {
                    scenario.actions.drain(from..to);
                },
            );
            self.leave_out(
                |scenario| scenario.clients.len(),
                |scenario, from, to| {
                    for client in &mut scenario.clients[from..to] {
                        client.starts = None;
                    }
                },
            );
            self.leave_out(
                |scenario| scenario.servers.len(),
                |scenario, from, to| {
                    let is_out = |server: &ServerNo| (from..to).contains(&server.0);
                    scenario.without_servers(is_out);
                },
            );
            self.simplify();
            if self.best == before || self.left == 0 {
                return (self.best, self.violation);
            }
        }
    }

    /// What comes after the rule was broken plays no part.
    fn cut_after_the_end(&mut self) {
        let end = self.violation.at;
        let mut scenario = self.best.clone();
        scenario.actions.retain(|(at, _)| *at <= end);
        for client in &mut scenario.clients {
            client.starts = client.starts.filter(|at| *at <= end);
        }
        self.attempt(scenario);
    }

    /// Leaves out parts, at first large ones, then smaller ones.
    fn leave_out(&mut self, count: fn(&Scenario) -> usize, cut: fn(&mut Scenario, usize, usize)) {
        let mut size = count(&self.best);
        while size > 0 {
            let mut from = 0;
            while from < count(&self.best) {
                let mut scenario = self.best.clone();
                let to = (from + size).min(count(&scenario));
                cut(&mut scenario, from, to);
                let was_shorter = self.attempt(scenario) && count(&self.best) < to;
                // What was cut out makes room for what comes next.
                if !was_shorter {
                    from = to;
                }
            }
            size /= 2;
        }
    }

    fn simplify(&mut self) {
        let simpler: [fn(&mut Scenario); 10] = [
            |scenario| scenario.latency = (MILLISECOND, MILLISECOND),
            |scenario| scenario.has_twins = false,
            |scenario| scenario.servers.iter_mut().for_each(|one| one.curse = None),
            |scenario| {
                let times = scenario.actions.iter().map(|(at, _)| *at);
                scenario.length = times.max().unwrap_or_default() + Duration::from_secs(1);
            },
            |scenario| {
                for client in &mut scenario.clients {
                    client.starts = client.starts.map(|_| Duration::ZERO);
                }
            },
            |scenario| {
                for client in &mut scenario.clients {
                    client.choice = Choice::First;
                }
            },
            |scenario| {
                for client in &mut scenario.clients {
                    client.has_jitter = false;
                }
            },
            |scenario| {
                for client in &mut scenario.clients {
                    client.skips_check = true;
                }
            },
            |scenario| {
                let listed = scenario.listed.clone();
                for client in scenario.clients.iter_mut().filter(|_| !listed.is_empty()) {
                    client.finds = Finds::List(listed.clone());
                }
            },
            |scenario| {
                for (at, _) in &mut scenario.actions {
                    *at = Duration::from_secs(at.as_secs());
                }
            },
        ];
        for change in simpler {
            let mut scenario = self.best.clone();
            change(&mut scenario);
            self.attempt(scenario);
        }
    }

    /// Takes a scenario for the best if it differs and breaks the same rule.
    fn attempt(&mut self, scenario: Scenario) -> bool {
        if scenario == self.best || self.left == 0 {
            return false;
        }
        self.left -= 1;
        let broken = Play::new(self.base, &scenario).under(self.rule).run().err();
        match broken.filter(|violation| kind(violation) == self.kind) {
            Some(violation) => {
                (self.best, self.violation) = (scenario, violation);
                true
            }
            None => false,
        }
    }
}

impl Scenario {
    /// Servers that nobody finds play no part, nor does what happens to them.
    fn without_servers(&mut self, is_out: impl Fn(&ServerNo) -> bool) {
        self.listed.retain(|server| !is_out(server));
        for client in &mut self.clients {
            if let Finds::List(servers) = &mut client.finds {
                servers.retain(|server| !is_out(server));
                if servers.is_empty() {
                    client.starts = None;
                    servers.push(ServerNo(0));
                }
            }
        }
        self.actions
            .retain(|(_, action)| !action.server().as_ref().is_some_and(&is_out));
        for (_, action) in &mut self.actions {
            if let Action::Partition(servers, _, _) | Action::List(servers) = action {
                servers.retain(|server| !is_out(server));
            }
        }
    }
}

impl Action {
    /// The server that it happens to, if it is one.
    fn server(&self) -> Option<ServerNo> {
        match self {
            Self::Crash(server)
            | Self::Start(server)
            | Self::Restart(server)
            | Self::GoAway(server, _)
            | Self::FinishStreams(server, _)
            | Self::PauseServer(server, _)
            | Self::SlowServer(server, _)
            | Self::GoesWrong(server, _)
            | Self::GoesRight(server)
            | Self::ForgetTokens(server)
            | Self::Speak(server, _) => Some(*server),
            Self::SlowClient(..)
            | Self::BlackHole(_)
            | Self::LoseTransport(..)
            | Self::Pause(..)
            | Self::Suspend(..)
            | Self::Close(_)
            | Self::Connect(_)
            | Self::Tick(_)
            | Self::RefreshToken(..)
            | Self::Partition(..)
            | Self::HealPartitions
            | Self::Dns(..)
            | Self::Unconfigured(_)
            | Self::List(_)
            | Self::Disorder(_) => None,
        }
    }
}

/// A second or two, for a release build.
const MOST_RUNS: u32 = 600;

const MILLISECOND: Duration = Duration::from_millis(1);
