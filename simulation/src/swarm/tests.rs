//! The swarm itself: that it replays, that it judges, and that it makes small what breaks a rule.

use super::{shrink::Shrinking, *};
use crate::{ClientId, Fault, Host, Reachable, World};
use chronicle_connection::{Command, Request, State};
use chronicle_reference_server::model::{Age, FirstKeepAlive};

#[allow(clippy::disallowed_methods, reason = "the edge of virtual time")]
fn now() -> Instant {
    Instant::now()
}

/// One server and one client, and nothing goes wrong.
fn plain() -> Scenario {
    Scenario {
        seed: 1,
        latency: (Duration::from_millis(1), Duration::from_millis(1)),
        has_twins: false,
        servers: vec![ServerPlan {
            age: Age::Current,
            speech: Speech::Fits,
            first_keep_alive: FirstKeepAlive::AtOnce,
            interval: Duration::from_secs(1),
            evict_check: Duration::from_secs(2),
            checks_callers: false,
            curse: None,
        }],
        authentication: None,
        token_life: Duration::from_secs(60),
        name_servers: 0,
        listed: vec![],
        clients: vec![ClientPlan {
            starts: Some(Duration::ZERO),
            finds: Finds::List(vec![ServerNo(0)]),
            choice: Choice::LeastConnections,
            proof: Proof::None,
            skips_check: false,
            connect_timeout: None,
            ceiling: Duration::from_secs(30),
            has_jitter: true,
            has_debugger: false,
        }],
        actions: vec![],
        length: Duration::from_secs(10),
    }
}

/// A rule that does not hold: nobody ever connects a second time.
fn no_second_session(world: &World) -> Option<(ClientId, String)> {
    let mut clients = world.client_ids();
    let again = clients.find(|client| world.client(*client).stats().sessions > 1)?;
    Some((again, "a second session".to_owned()))
}

/// The rule that is broken once the time for trouble is over.
fn judged(play: &mut Play<'_>) -> String {
    for client in play.clients.clone() {
        play.world.try_command(client, Command::Connect).unwrap();
    }
    play.pass_until(Duration::from_secs(10)).unwrap();
    judge::judge(play).unwrap_err().rule
}

fn broken(scenario: &Scenario) -> Option<String> {
    run(now(), scenario).err().map(|violation| violation.rule)
}

#[test]
fn a_seed_gives_one_scenario_and_one_trace() {
    let traces = |seed| {
        let scenario = Scenario::draw(seed);
        assert_eq!(scenario, Scenario::draw(seed));
        let traces = [(), ()].map(|()| {
            let mut play = Play::new(now(), &scenario).traced();
            assert!(play.run().is_ok());
            play.trace().as_str().to_owned()
        });
        assert!(traces[0] == traces[1], "seed {seed} gave two traces");
        traces.map(|trace| trace.len())
    };
    assert_ne!(traces(1), traces(2));
}

#[test]
fn what_is_recorded_decides_nothing() {
    let scenario = Scenario::draw(4);
    let traced = Play::new(now(), &scenario).traced().run();
    assert_eq!(run(now(), &scenario), traced);
}

#[test]
fn a_plain_scenario_breaks_nothing() {
    let summary = run(now(), &plain()).unwrap();
    assert_eq!(
        (summary.clients, summary.connects, summary.drops),
        (1, 1, 0)
    );
}

#[test]
fn a_broken_rule_is_told_by_the_smallest_scenario() {
    let drawn = (0..100).map(Scenario::draw).find_map(|scenario| {
        let played = Play::new(now(), &scenario).under(no_second_session).run();
        Some((played.err()?, scenario))
    });
    let (violation, scenario) = drawn.unwrap();
    let (small, violation) =
        Shrinking::new(now(), scenario.clone(), violation, no_second_session).run();
    assert_eq!(violation.rule, "a second session");
    let started = small.clients.iter().filter(|one| one.starts.is_some());
    assert_eq!(started.count(), 1, "{small}");
    assert!(small.actions.len() <= 1, "{small}");
    assert!(small.to_string().lines().count() < scenario.to_string().lines().count());
    let again = Play::new(now(), &small).under(no_second_session).run();
    assert_eq!(again.err(), Some(violation));
}

#[test]
fn what_breaks_nothing_stays_as_it_is() {
    let violation = Violation::new("c1", Duration::from_secs(200), "nothing like it".to_owned());
    let (small, told) = shrink(now(), plain(), violation.clone());
    assert_eq!((small, told), (plain(), violation));
}

#[test]
fn a_session_that_is_closed_is_no_drop() {
    let mut closes = plain();
    let close = Action::Close(ClientNo(0));
    closes.actions.push((Duration::from_secs(5), close));
    let summary = run(now(), &closes).unwrap();
    assert_eq!((summary.connects, summary.drops), (1, 0));
}

#[test]
fn a_client_that_does_not_connect_although_all_is_well() {
    // The judge is told that the server is fine, and nobody gets through.
    let mut scenario = plain();
    let wrong = Wrong::Dialled(Reachable::Hangs);
    scenario.servers[0].curse = Some(wrong);
    assert_eq!(broken(&scenario), None, "cursed, it need not");
    let mut play = Play::new(now(), &scenario);
    let fine = plain();
    play.scenario = &fine;
    let rule = judged(&mut play);
    assert!(rule.contains("Connects is"), "{rule}");
}

/// Sessions come up, and none lasts.
fn flaps() -> Option<Wrong> {
    Some(Wrong::Asked(Request::KeepAlive, Fault::Hangs))
}

#[test]
fn a_session_that_does_not_last_although_all_is_well() {
    let mut flapping = plain();
    flapping.servers[0].curse = flaps();
    let mut play = Play::new(now(), &flapping);
    let fine = plain();
    play.scenario = &fine;
    let rule = judged(&mut play);
    assert!(rule.contains("although all is well"), "{rule}");
}

/// Two servers for the one client.
fn with_two_servers() -> Scenario {
    let mut scenario = plain();
    scenario.servers.push(scenario.servers[0].clone());
    scenario.clients[0].finds = Finds::List(vec![ServerNo(0), ServerNo(1)]);
    scenario
}

#[test]
fn a_client_that_a_server_of_short_sessions_has_for_good() {
    let mut fine = with_two_servers();
    fine.servers[0].curse = flaps();
    assert_eq!(broken(&fine), None);
    // The judge is told that the other is fine, and it is not.
    let mut captured = fine.clone();
    captured.servers[1].curse = Some(Wrong::Dialled(Reachable::Refuses));
    let mut play = Play::new(now(), &captured);
    play.scenario = &fine;
    let rule = judged(&mut play);
    assert!(rule.contains("Connects is"), "{rule}");
}

#[test]
fn a_transport_that_no_session_needs() {
    let scenario = with_two_servers();
    let mut play = Play::new(now(), &scenario);
    let client = play.clients[0];
    play.world.try_command(client, Command::Connect).unwrap();
    let chosen = loop {
        if let State::Handshaking { server } = play.world.client(client).state() {
            break server;
        }
        let soon = play.world.elapsed() + Duration::from_micros(100);
        play.pass_until(soon).unwrap();
    };
    // The other does not hear that it was not chosen.
    let mut servers = play.world.server_ids();
    let other = servers.find(|id| *play.world.server(*id).endpoint() != chosen);
    let other = other.map(Host::Server);
    play.world.partition([Host::Client(client)], other);
    let rule = judge::judge(&mut play).unwrap_err().rule;
    assert!(rule.contains("2 transports are open"), "{rule}");
}

#[test]
fn whoever_closes_and_leaves_something_behind() {
    let mut scenario = plain();
    scenario.clients[0].has_debugger = true;
    let closing = |tamper: fn(&mut World, ClientId)| {
        let mut play = Play::new(now(), &scenario);
        let client = play.clients[0];
        play.world.try_command(client, Command::Connect).unwrap();
        play.pass_until(Duration::from_secs(2)).unwrap();
        tamper(&mut play.world, client);
        judge::farewell(&mut play).map_err(|violation| violation.rule)
    };
    assert_eq!(closing(|_, _| {}), Ok(()));
    let rule = closing(|world, client| {
        let servers: Vec<_> = world.server_ids().map(Host::Server).collect();
        world.partition([Host::Client(client)], servers);
    });
    let rule = rule.unwrap_err();
    assert!(rule.contains("Stopped with 1 transports"), "{rule}");
    let rule = closing(World::black_hole).unwrap_err();
    assert!(rule.contains("1 clients are registered"), "{rule}");
}

#[test]
fn nobody_is_stopped_or_connected_who_must_not_be() {
    let mut differs = plain();
    differs.servers[0].speech = Speech::Differs { says_yes: true };
    assert_eq!(broken(&differs), None);
    let fine = plain();
    for (played, plan, text) in [
        (&fine, &differs, "Stops is Connected"),
        (&differs, &fine, "gave up without any trouble"),
    ] {
        let mut play = Play::new(now(), played);
        play.scenario = plan;
        let rule = judged(&mut play);
        assert!(rule.contains(text), "{rule}");
    }
}
