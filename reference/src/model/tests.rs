//! Each rule of a server, in virtual time.

use super::*;

#[test]
fn a_server_counts_its_clients_and_the_reservations() {
    let mut world = World::default();
    assert_eq!(world.count_at(0), 0);
    world.reserve_at(0);
    world.reserve_at(0);
    world.connect_at(0, "a");
    assert_eq!(world.count_at(0), 2, "one client, one reservation left");
}

#[test]
fn a_reservation_counts_for_thirty_seconds() {
    let mut world = World::default();
    world.reserve_at(1_000);
    assert_eq!(world.count_at(30_999), 1);
    assert_eq!(world.count_at(31_000), 0);
}

#[test]
fn a_server_may_take_reservations_without_counting_them() {
    let mut world = World::default();
    world.model.config_mut().counts_reservations = false;
    world.reserve_at(0);
    world.reserve_at(0);
    world.connect_at(0, "a");
    assert_eq!(world.count_at(0), 1, "one client");
    world.model.config_mut().counts_reservations = true;
    assert_eq!(world.count_at(0), 2, "and the reservation that is left");
}

#[test]
fn any_registration_clears_the_oldest_reservation() {
    let mut world = World::default();
    world.reserve_at(0);
    world.reserve_at(10_000);
    let stream = world.connect_at(11_000, "a client that reserved nothing");
    world.disconnect_at(11_000, stream);
    assert_eq!(world.count_at(30_000), 1, "the later one is left");
    assert_eq!(world.count_at(40_000), 0);
}

#[test]
fn a_client_that_registers_once_more_clears_a_reservation_too() {
    let mut world = World::default();
    world.connect_at(0, "a");
    world.reserve_at(0);
    world.connect_at(0, "a");
    assert_eq!(world.count_at(0), 1);
}

#[test]
fn an_expired_reservation_is_not_the_one_that_is_cleared() {
    let mut world = World::default();
    world.reserve_at(0);
    world.reserve_at(20_000);
    let stream = world.connect_at(30_000, "a");
    world.disconnect_at(30_000, stream);
    assert_eq!(world.count_at(30_000), 0);
}

#[test]
fn the_first_keep_alive_comes_at_once_and_then_one_each_second() {
    let mut world = World::default();
    world.connect_at(300, "a");
    assert_eq!(
        world.pushes_until(2_400),
        [(300, "a"), (1_300, "a"), (2_300, "a")]
    );
}

#[test]
fn on_an_older_server_the_first_keep_alive_comes_after_the_interval() {
    let mut world = World::default();
    world.model.config_mut().first_keep_alive = FirstKeepAlive::AfterInterval;
    world.connect_at(300, "a");
    assert_eq!(world.pushes_until(2_400), [(1_300, "a"), (2_300, "a")]);
}

#[test]
fn a_server_that_was_paused_sends_one_keep_alive_for_all_it_missed() {
    let mut world = World::default();
    let stream = world.connect_at(0, "a");
    let keep_alive = ConnectionKeepAlive {
        connection_id: "a".to_owned(),
    };
    let now = world.at(7_500);
    assert_eq!(world.model.poll_push(now), Some((stream, keep_alive)));
    assert_eq!(world.model.poll_push(now), None);
    assert_eq!(world.pushes_until(9_000), [(8_500, "a")]);
}

#[test]
fn a_silent_server_sends_nothing_until_it_speaks_again() {
    let mut world = World::default();
    world.connect_at(0, "a");
    world.model.config_mut().silent = true;
    assert_eq!(world.pushes_until(3_500), []);
    world.model.config_mut().silent = false;
    assert_eq!(world.pushes_until(4_500), [(4_000, "a")]);
}

#[test]
fn a_client_that_does_not_answer_is_evicted_at_the_first_look_after_five_seconds() {
    let mut world = World::default();
    world.connect_at(0, "at 0 s");
    world.connect_at(500, "at 0.5 s");
    world.connect_at(1_500, "at 1.5 s");
    world.pushes_until(5_999);
    assert_eq!(world.model.clients().count(), 3);
    world.pushes_until(6_000);
    assert_eq!(world.clients(), ["at 1.5 s"], "looks come every 2 s");
    world.pushes_until(8_000);
    assert_eq!(world.model.clients().count(), 0);
}

#[test]
fn eviction_is_silent_and_the_stream_goes_on() {
    let mut world = World::default();
    world.connect_at(0, "a");
    assert_eq!(world.pushes_until(60_000).len(), 61);
    assert_eq!(world.count_at(60_000), 0);
}

#[test]
fn a_client_that_answers_stays() {
    let mut world = World::default();
    world.connect_at(0, "a");
    for second in (4..60).step_by(4) {
        world.answer_at(second * 1_000, "a");
    }
    assert_eq!(world.count_at(60_000), 1);
}

#[test]
fn an_answer_of_an_evicted_client_does_not_bring_it_back() {
    let mut world = World::default();
    world.connect_at(0, "a");
    world.answer_at(6_000, "a");
    world.answer_at(6_000, "nobody");
    assert_eq!(world.count_at(6_000), 0);
}

#[test]
fn a_late_look_is_taken_as_of_its_own_instant() {
    let mut world = World::default();
    world.connect_at(1_500, "a");
    // The look at 6 s finds it unseen for 4.5 s, although nobody calls before 7 s.
    assert_eq!(world.count_at(7_000), 1);
}

#[test]
fn a_client_with_a_debugger_is_never_evicted() {
    let mut world = World::default();
    let request = ConnectRequest {
        is_running_with_debugger: true,
        ..request("a")
    };
    world.model.connect(world.start, &request);
    assert_eq!(world.count_at(3_600_000), 1);
}

#[test]
fn a_registration_replaces_one_with_the_same_id() {
    let mut world = World::default();
    let first = world.connect_at(0, "a");
    let second = world.connect_at(4_000, "a");
    assert_eq!(world.count_at(4_000), 1);
    assert_eq!(world.count_at(8_000), 1, "seen when it registered again");
    world.disconnect_at(8_000, first);
    assert_eq!(
        world.count_at(8_000),
        1,
        "the first stream no longer counts"
    );
    world.disconnect_at(8_000, second);
    assert_eq!(world.count_at(8_000), 0);
}

#[test]
fn a_stream_that_ends_takes_its_registration_and_its_keep_alives_along() {
    let mut world = World::default();
    let stream = world.connect_at(0, "a");
    world.connect_at(0, "b");
    world.disconnect_at(100, stream);
    world.disconnect_at(100, stream);
    assert_eq!(world.clients(), ["b"]);
    assert_eq!(world.pushes_until(1_500), [(100, "b"), (1_000, "b")]);
}

#[test]
fn a_server_without_clients_waits_for_nothing() {
    let mut world = World::default();
    assert_eq!(world.model.poll_timeout(), None);
    let stream = world.connect_at(0, "a");
    world.model.disconnect(world.start, stream);
    assert_eq!(world.model.poll_timeout(), None);
}

#[test]
fn once_drained_the_deadline_is_later_than_now() {
    let mut world = World::default();
    world.model.config_mut().keep_alive_interval = Duration::ZERO;
    world.model.config_mut().evict_check = Duration::ZERO;
    world.connect_at(0, "a");
    for millis in [0, 1, 2_000, 2_000, 50_000] {
        let now = world.at(millis);
        while world.model.poll_push(now).is_some() {}
        assert!(world.model.poll_timeout() > Some(now));
    }
}

#[test]
fn the_verdict_is_what_the_switch_says() {
    let findings = vec!["a.b.C removed".to_owned()];
    for (verdict, is_compatible, incompatibilities) in [
        (Verdict::Compatible, true, vec![]),
        (
            Verdict::CompatibleBut(findings.clone()),
            true,
            findings.clone(),
        ),
        (Verdict::Incompatible(findings.clone()), false, findings),
        (Verdict::Incompatible(vec![]), false, vec![]),
        (Verdict::Unreadable, false, vec![UNREADABLE.to_owned()]),
    ] {
        let mut world = World::default();
        world.model.config_mut().verdict = verdict;
        let expected = CompatibilityResponse {
            is_compatible,
            incompatibilities,
            server_version: "18.5.0".to_owned(),
            server_protocol_version: "18.5.0".to_owned(),
            capabilities: vec![],
        };
        let set = chronicle_connection_proto::SESSION_DESCRIPTOR_SET;
        assert_eq!(world.check(set), Ok(expected));
    }
}

#[test]
fn a_descriptor_set_that_cannot_be_read_is_refused_whatever_the_verdict() {
    let response = World::default().check(b"\x0a\xffno").unwrap();
    assert!(!response.is_compatible);
    assert_eq!(response.incompatibilities, [UNREADABLE]);
}

#[test]
fn older_servers_lack_the_check_and_the_oldest_the_descriptor_set() {
    let mut world = World::default();
    assert!(world.check(b"").is_ok());
    assert!(world.model.descriptor_set().is_ok());

    world.model.config_mut().age = Age::WithoutCheck;
    assert!(world.check(b"").unwrap_err().is_unimplemented());
    let text = world.model.descriptor_set().unwrap().schema_definition;
    assert!(text.contains("rpc Connect (ConnectRequest)"), "{text}");

    world.model.config_mut().age = Age::WithoutCheckAndDescriptors;
    assert!(world.check(b"").unwrap_err().is_unimplemented());
    assert!(world.model.descriptor_set().unwrap_err().is_unimplemented());
}

/// A model and its clock, in milliseconds since the start.
struct World {
    model: ServerModel,
    start: Instant,
    now: u64,
}

impl Default for World {
    #[allow(
        clippy::disallowed_methods,
        reason = "an origin, from which time is virtual"
    )]
    fn default() -> Self {
        let start = Instant::now();
        Self {
            model: ServerModel::new(ModelConfig::default(), start),
            start,
            now: 0,
        }
    }
}

impl World {
    fn at(&mut self, millis: u64) -> Instant {
        self.now = millis;
        self.start + Duration::from_millis(millis)
    }

    fn count_at(&mut self, millis: u64) -> u64 {
        let now = self.at(millis);
        self.model.count(now)
    }

    fn reserve_at(&mut self, millis: u64) {
        let now = self.at(millis);
        self.model.reserve(now);
    }

    fn connect_at(&mut self, millis: u64, id: &str) -> StreamKey {
        let now = self.at(millis);
        self.model.connect(now, &request(id))
    }

    fn disconnect_at(&mut self, millis: u64, stream: StreamKey) {
        let now = self.at(millis);
        self.model.disconnect(now, stream);
    }

    fn answer_at(&mut self, millis: u64, id: &str) {
        let now = self.at(millis);
        let connection_id = id.to_owned();
        self.model
            .keep_alive(now, &ConnectionKeepAlive { connection_id });
    }

    /// What is pushed from now until then, at the instants that the model asks for.
    fn pushes_until(&mut self, millis: u64) -> Vec<(u64, &'static str)> {
        let mut pushes = vec![];
        loop {
            let now = self.start + Duration::from_millis(self.now);
            while let Some((_, keep_alive)) = self.model.poll_push(now) {
                pushes.push((self.now, keep_alive.connection_id.leak() as &str));
            }
            let Some(due) = self.model.poll_timeout() else {
                break;
            };
            let due = due.duration_since(self.start).as_millis() as u64;
            if due > millis {
                break;
            }
            self.now = due.max(self.now);
        }
        self.now = millis;
        pushes
    }

    fn clients(&self) -> Vec<&str> {
        self.model.clients().collect()
    }

    fn check(&self, descriptor_set: &[u8]) -> Result<CompatibilityResponse, Status> {
        self.model.check_compatibility(&CompatibilityRequest {
            descriptor_set: descriptor_set.to_vec(),
            ..CompatibilityRequest::default()
        })
    }
}

fn request(id: &str) -> ConnectRequest {
    ConnectRequest {
        connection_id: id.to_owned(),
        ..ConnectRequest::default()
    }
}
