//! The swarm itself: that it replays, that it judges, and that it makes small what breaks a rule.

use super::{shrink::Shrinking, *};
use crate::{ClientId, World};
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
        let connect = chronicle_connection::Command::Connect;
        play.world.try_command(client, connect).unwrap();
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
fn a_client_that_does_not_connect_although_all_is_well() {
    // The judge is told that the server is fine, and nobody gets through.
    let mut scenario = plain();
    let wrong = Wrong::Dialled(crate::Reachable::Hangs);
    scenario.servers[0].curse = Some(wrong);
    assert_eq!(broken(&scenario), None, "cursed, it need not");
    let mut play = Play::new(now(), &scenario);
    let fine = plain();
    play.scenario = &fine;
    let rule = judged(&mut play);
    assert!(rule.contains("Connects is"), "{rule}");
}

#[test]
fn a_session_that_does_not_last_although_all_is_well() {
    let mut flapping = plain();
    flapping.servers[0].curse = Some(Wrong::Asked(
        chronicle_connection::Request::KeepAlive,
        crate::Fault::Hangs,
    ));
    let mut play = Play::new(now(), &flapping);
    let fine = plain();
    play.scenario = &fine;
    let rule = judged(&mut play);
    let is_it = rule.contains("although all is well") || rule.contains("Connects is");
    assert!(is_it, "{rule}");
}

#[test]
fn nobody_is_stopped_or_connected_who_must_not_be() {
    let mut differs = plain();
    differs.servers[0].speech = Speech::Differs;
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

#[test]
fn seeds_that_once_failed_are_known() {
    assert!(known_seeds().contains(&247));
}
