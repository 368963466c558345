//! What must have become of everybody once all is healed.

use super::{
    Action, ClientPlan, Finds, Proof, Scenario, ServerNo, Speech, Summary, Wrong,
    play::{Play, can_compare},
};
use crate::{ClientId, Told, Violation};
use chronicle_connection::{Command, Event, FatalError, Request, State, Timing};
use std::time::Duration;

/// What must have become of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Connected. Or stopped, by what servers said while not all was well.
    Connects,
    /// Stopped: nothing but refusals can have met it.
    Stops,
    /// Anything but connected.
    Fails,
    /// Nobody can tell.
    Open,
}

/// Lets time pass until everybody must be where they belong, and looks.
pub(super) fn judge(play: &mut Play<'_>) -> Result<Summary, Violation> {
    let healed = play.world.elapsed().max(play.stopped_until);
    play.pass_until(healed + SETTLING)?;
    let expected = expected(play);
    let worst = healed + worst_case(play.scenario);
    loop {
        let now = play.world.elapsed();
        let lagging = expected
            .iter()
            .find(|(client, fate)| !has_met(play, *client, *fate));
        let Some((client, fate)) = lagging else { break };
        if now >= worst {
            let after = now - healed;
            let state = play.world.client(*client).state();
            let rule = format!("{after:?} after all was healed, {fate:?} is {state:?}");
            return Err(play.violation(*client, rule));
        }
        play.pass_until(now + Duration::from_millis(500))?;
    }
    founded(play, &expected)?;
    quiet(play, &expected)?;
    let summary = summary(play);
    farewell(play)?;
    Ok(summary)
}

fn expected(play: &Play<'_>) -> Vec<(ClientId, Fate)> {
    let plans = play.scenario.clients.iter().zip(&play.clients);
    let fates = plans.filter(|(plan, client)| plan.starts.is_some() && !is_closed(play, **client));
    fates
        .map(|(plan, client)| (*client, play.scenario.fate(plan)))
        .collect()
}

fn is_closed(play: &Play<'_>, client: ClientId) -> bool {
    let mut events = play.world.client(client).events().iter();
    events.any(|(_, event)| matches!(event, Event::Closed))
}

fn has_met(play: &Play<'_>, client: ClientId, fate: Fate) -> bool {
    let state = play.world.client(client).state();
    match (fate, state) {
        // A server that loses its sessions time and again must not have it for good.
        (Fate::Connects, State::Connected(_)) => !play.has_cursed_server(client),
        (Fate::Connects | Fate::Stops, State::Stopped) => true,
        (
            Fate::Connects | Fate::Stops,
            State::Idle
            | State::Resolving
            | State::Selecting
            | State::Handshaking { .. }
            | State::BackingOff,
        )
        | (Fate::Stops, State::Connected(_)) => false,
        (Fate::Fails, state) => !matches!(state, State::Connected(_)),
        (Fate::Open, _) => true,
    }
}

/// Nobody who meets no trouble gives up. That what servers said was reason enough, the books of the
/// machine have shown.
fn founded(play: &Play<'_>, expected: &[(ClientId, Fate)]) -> Result<(), Violation> {
    for (client, fate) in expected {
        let mut events = play.world.client(*client).events().iter();
        let gave_up = events.find_map(|(at, event)| {
            if let Event::Failed(error) = event {
                return Some((*at, error));
            }
            None
        });
        let Some((at, error)) = gave_up else { continue };
        let had_trouble = play.scenario.has_trouble_until(at);
        if *fate == Fate::Connects && !had_trouble {
            return Err(play.violation(*client, format!("gave up without any trouble: {error}")));
        }
        if matches!(error, FatalError::Incompatible(_)) && play.scenario.never_differs() {
            return Err(play.violation(*client, format!("nobody ever differed: {error}")));
        }
    }
    Ok(())
}

/// Once everybody is where they belong, sessions last, and each has one transport.
fn quiet(play: &mut Play<'_>, expected: &[(ClientId, Fate)]) -> Result<(), Violation> {
    let changes = play.world.session_changes().len();
    play.pass_until(play.world.elapsed() + QUIET)?;
    let doomed = |client: ClientId| {
        let fate = expected.iter().find(|(one, _)| *one == client);
        fate.is_some_and(|(_, fate)| *fate != Fate::Connects)
    };
    let mut changed = play.world.session_changes()[changes..].iter();
    if let Some(change) = changed.find(|change| !doomed(change.client)) {
        let rule = "its session changed although all is well".to_owned();
        return Err(play.violation(change.client, rule));
    }
    for client in play.clients.iter().copied() {
        let open = play.world.live_transports(client);
        let allowed = match play.world.client(client).state() {
            // It takes a moment until the server sees the end of a transport.
            _ if doomed(client) && heard_lately(play, client) => 0..=usize::MAX,
            State::Connected(_) => 1..=1,
            State::Idle | State::Stopped => 0..=0,
            State::Resolving | State::Selecting | State::Handshaking { .. } | State::BackingOff => {
                0..=usize::MAX
            }
        };
        if !allowed.contains(&open) {
            let state = play.world.client(client).state();
            let rule = format!("{open} transports are open while it is {state:?}");
            return Err(play.violation(client, rule));
        }
    }
    Ok(())
}

fn heard_lately(play: &Play<'_>, client: ClientId) -> bool {
    let events = play.world.client(client).events();
    events
        .last()
        .is_some_and(|(at, _)| play.world.elapsed() - *at < MOMENT)
}

/// Everybody closes, and nothing is left: no transport, no registration.
pub(super) fn farewell(play: &mut Play<'_>) -> Result<(), Violation> {
    for client in play.clients.clone() {
        play.world.try_command(client, Command::Close)?;
    }
    play.pass_until(play.world.elapsed() + LEAVING)?;
    for client in play.clients.iter().copied() {
        let open = play.world.live_transports(client);
        let state = play.world.client(client).state();
        if open > 0 || state != State::Stopped {
            let rule = format!("closed, it is {state:?} with {open} transports");
            return Err(play.violation(client, rule));
        }
    }
    if play.scenario.leaves_registrations() {
        return Ok(());
    }
    for id in play.world.server_ids() {
        let registered = play.world.server(id).registered();
        if registered > 0 {
            let rule = format!("{registered} clients are registered although all have closed");
            return Err(Violation::new(&id.to_string(), play.world.elapsed(), rule));
        }
    }
    Ok(())
}

fn summary(play: &Play<'_>) -> Summary {
    let world = &play.world;
    let stats = || world.clients().map(crate::Client::stats);
    let events = || world.clients().flat_map(crate::Client::events);
    let stopped = |client: &ClientId| {
        let mut events = world.client(*client).events().iter();
        events.any(|(_, event)| matches!(event, Event::Failed(_)))
    };
    Summary {
        scenarios: 1,
        clients: world
            .clients()
            .filter(|one| one.stats().attempts > 0)
            .count() as u64,
        connects: stats().map(|stats| stats.sessions).sum(),
        drops: events()
            .filter(|(_, event)| matches!(event, Event::Disconnected { .. }))
            .count() as u64,
        attempts: stats().map(|stats| stats.attempts).sum(),
        stops: play.clients.iter().filter(|client| stopped(client)).count() as u64,
        events: events().count() as u64,
        time: world.elapsed(),
    }
}

impl Scenario {
    fn fate(&self, client: &ClientPlan) -> Fate {
        let candidates = self.candidates(client);
        let fits = |server: &ServerNo| {
            let plan = &self.servers[server.0];
            client.skips_check || plan.speech == Speech::Fits && can_compare(plan.age)
        };
        let is_sound = |server: &&ServerNo| !self.is_cursed(**server, client);
        let sound: Vec<_> = candidates.iter().filter(is_sound).collect();
        let proof = match (self.authentication, client.proof) {
            (None, Proof::None | Proof::Key | Proof::WrongKey)
            | (Some(_), Proof::Key | Proof::Secret) => Proven::Yes,
            (Some(_), Proof::None | Proof::WrongKey | Proof::WrongSecret) => Proven::No,
            // There is nobody to get a token from.
            (None, Proof::Secret | Proof::WrongSecret) => Proven::Never,
        };
        let asks_for_tokens = matches!(client.proof, Proof::Secret | Proof::WrongSecret);
        let all_differ = !candidates.is_empty() && !candidates.iter().any(fits);
        let any_fits = sound.iter().any(|one| fits(one));
        let may_have_found_others = match client.finds {
            Finds::Name { .. } => self.lists_others(),
            Finds::List(_) => false,
        };
        let flaps = |server: &ServerNo| {
            let curse = self.servers[server.0].curse.as_ref();
            curse.is_some_and(|curse| !fails_at_once(curse))
        };
        match proof {
            Proven::Yes if any_fits => Fate::Connects,
            Proven::Yes | Proven::No | Proven::Never if may_have_found_others => Fate::Open,
            Proven::Yes if all_differ && sound.len() == candidates.len() => Fate::Stops,
            // A false token may have brought a session, and who had one tries for ever.
            Proven::No | Proven::Never if asks_for_tokens && self.has_false_tokens() => Fate::Open,
            Proven::No if any_fits => Fate::Stops,
            // With such a server there are sessions, time and again.
            Proven::Yes if candidates.iter().any(flaps) => Fate::Open,
            Proven::Yes | Proven::No | Proven::Never => Fate::Fails,
        }
    }

    /// Whether something is wrong for ever with a server, as a client sees it.
    pub(super) fn is_cursed(&self, server: ServerNo, client: &ClientPlan) -> bool {
        match &self.servers[server.0].curse {
            Some(Wrong::Asked(Request::CheckCompatibility, _)) => !client.skips_check,
            Some(Wrong::Asked(..) | Wrong::Dialled(_) | Wrong::Silent) => true,
            None => false,
        }
    }

    /// Whether somebody hands out tokens that no server knows.
    fn has_false_tokens(&self) -> bool {
        self.actions.iter().any(|(_, action)| {
            matches!(
                action,
                Action::GoesWrong(_, Wrong::Asked(Request::Token, _))
            )
        })
    }

    /// Whether DNS told other servers for a while, whose sessions may last.
    fn lists_others(&self) -> bool {
        let mut actions = self.actions.iter();
        actions.any(|(_, action)| matches!(action, Action::List(_)))
    }

    /// Whether some server never hears that a client has gone whom it does not evict.
    fn leaves_registrations(&self) -> bool {
        let mut actions = self.actions.iter();
        actions.any(|(_, action)| {
            matches!(
                action,
                Action::BlackHole(client) | Action::LoseTransport(client, Told::Client)
                    if self.clients[client.0].has_debugger
            )
        })
    }

    /// Whether anything goes wrong by then.
    fn has_trouble_until(&self, at: Duration) -> bool {
        let is_plain = |server: &super::ServerPlan| {
            server.curse.is_none() && server.speech == Speech::Fits && can_compare(server.age)
        };
        let mut actions = self.actions.iter();
        actions.any(|(when, _)| *when <= at) || !self.servers.iter().all(is_plain)
    }

    /// Whether every server always finds every contract compatible, and can tell.
    fn never_differs(&self) -> bool {
        let tells = |wrong: &Wrong| {
            let is_check = |request: &Request| {
                matches!(
                    request,
                    Request::CheckCompatibility | Request::GetDescriptorSet
                )
            };
            matches!(wrong, Wrong::Asked(request, _) if is_check(request))
        };
        let is_plain = |server: &super::ServerPlan| {
            let fits = server.speech == Speech::Fits && can_compare(server.age);
            fits && !server.curse.as_ref().is_some_and(tells)
        };
        let mut actions = self.actions.iter();
        let differs = actions.any(|(_, action)| {
            matches!(action, Action::Speak(_, Speech::Differs { .. }))
                || matches!(action, Action::GoesWrong(_, wrong) if tells(wrong))
        });
        !differs && self.servers.iter().all(is_plain)
    }
}

/// Whether servers take a client for who it is.
enum Proven {
    Yes,
    No,
    Never,
}

/// Whether whoever chooses a server with this curse never gets a session from it.
fn fails_at_once(curse: &Wrong) -> bool {
    !matches!(curse, Wrong::Asked(Request::KeepAlive, _))
}

/// How long it may take from the healing of all faults until everybody is connected: a session that
/// is lost already is noticed, the attempt in flight may fail, the ladder has its longest wait, and
/// one attempt more finds a server that works, after all that are cursed. Those that lose each
/// session may have one each before a good one that had a short session gets another chance, and one
/// each after that.
fn worst_case(scenario: &Scenario) -> Duration {
    let timing = Timing::default();
    let ceiling = scenario.clients.iter().map(|client| client.ceiling).max();
    let rest = ceiling.unwrap_or_default();
    let selection = timing.lookup + timing.selection_wait + 2 * timing.count;
    // A check may wait for a token, and a token that was refused is fetched once more.
    let server = timing.open + timing.check + 2 * timing.token + 2 * timing.first_keep_alive;
    let cursed = scenario.servers.iter().filter(|one| one.curse.is_some());
    let curses: u32 = cursed.clone().count() as u32;
    let attempt = selection + (curses + 1) * server;
    let flapping = cursed.filter_map(|one| one.curse.as_ref());
    let flaps = flapping.filter(|curse| !fails_at_once(curse)).count() as u32;
    let again = rest + attempt;
    timing.keep_alive + attempt + again + 2 * flaps * (timing.keep_alive + again)
}

/// What was late is there by then, and sessions that were lost are noticed.
const SETTLING: Duration = Duration::from_secs(22);

const QUIET: Duration = Duration::from_secs(8);

const MOMENT: Duration = Duration::from_secs(2);

const LEAVING: Duration = Duration::from_secs(4);
