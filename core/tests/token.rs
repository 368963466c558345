//! The token machine alone: what it sends, what it takes for a token, and when it wants the next.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on has found a fault"
)]
#![allow(clippy::disallowed_methods, reason = "the edge of virtual time")]

use bytes::Bytes;
use chronicle_connection::{Failure, FailureKind, Secret, TokenError, TokenMachine};
use http::{Method, Request, Response, header};
use std::time::{Duration, Instant};

#[test]
fn the_request_is_a_form_of_client_credentials() {
    let mut tokens = TokenMachine::new("app one", Secret::new("p&=+ä%/:@~"));
    let request = tokens.begin().unwrap();
    assert_eq!(request.method(), Method::POST);
    assert_eq!(request.uri(), "/connect/token");
    assert_eq!(
        request.headers()[header::CONTENT_TYPE],
        "application/x-www-form-urlencoded"
    );
    assert!(!request.headers().contains_key(header::AUTHORIZATION));
    assert_eq!(
        request.body(),
        "grant_type=client_credentials&client_id=app%20one\
         &client_secret=p%26%3D%2B%C3%A4%25%2F%3A%40~"
    );
}

#[test]
fn a_fresh_token_is_served_without_another_request() {
    let mut world = World::new();
    assert_eq!(world.authorization(), None);
    assert_eq!(world.fetch(&good("the-token", "3600")), Ok(()));
    assert_eq!(world.authorization().as_deref(), Some("Bearer the-token"));
    assert_eq!(world.requests, 1);
    assert_eq!(world.generation(), Some(1));
    world.pass(100);
    assert!(!world.is_due());
    assert_eq!(world.authorization().as_deref(), Some("Bearer the-token"));
}

#[test]
fn an_authorization_is_marked_sensitive_and_no_debug_shows_it() {
    let mut world = World::new();
    world.fetch(&good("canary", "3600")).unwrap();
    let token = world.tokens.token(world.now).unwrap();
    assert!(token.authorization().is_sensitive());
    let shown = format!("{token:?} {:?} {:?}", world.tokens, token.authorization());
    assert!(!shown.contains("canary"), "{shown}");
    assert!(!shown.contains("the secret"), "{shown}");
}

#[test]
fn a_token_is_refreshed_ahead_of_expiry_by_a_quarter_of_its_life_and_at_most_a_minute() {
    for (life, due) in [
        (3600, 3540),
        (240, 180),
        (120, 90),
        (30, 22),
        (4, 3),
        (31_536_000, 31_535_940),
    ] {
        let mut world = World::new();
        world.fetch(&good("t", &life.to_string())).unwrap();
        let wait = world.tokens.due(world.now).unwrap() - world.now;
        assert_eq!(wait.as_secs(), due, "life {life}");
        assert!(world.at(life).is_none(), "life {life}");
        assert!(world.at(life - 1).is_some(), "life {life}");
    }
}

#[test]
fn the_shortest_life_still_has_time_between_two_fetches() {
    let mut world = World::new();
    world.fetch(&good("t", "1")).unwrap();
    let wait = world.tokens.due(world.now).unwrap() - world.now;
    assert_eq!(wait, Duration::from_millis(750));
}

#[test]
fn the_life_may_be_a_number_or_digits_and_is_an_hour_where_it_is_not_told() {
    for (told, life) in [
        (r#","expires_in":1800"#, 1800),
        (r#","expires_in":"1800""#, 1800),
        (r#","expires_in":1"#, 1),
        (r#","expires_in":31536000"#, 31_536_000),
        (r#","expires_in":null"#, 3600),
        ("", 3600),
    ] {
        let mut world = World::new();
        let body = format!(r#"{{"access_token":"t"{told}}}"#);
        world.fetch(&answer(200, &body)).unwrap();
        let token = world.tokens.token(world.now).unwrap();
        assert_eq!((token.expires_at() - world.now).as_secs(), life, "{told}");
    }
}

#[test]
fn a_life_that_makes_no_sense_is_a_failed_fetch() {
    for told in [
        "0",
        "-5",
        "31536001",
        "1e18",
        "99999999999999999999999",
        "1.5",
        "true",
        "[]",
        "{}",
        r#""""#,
        r#""soon""#,
        r#""-5""#,
        r#""+5""#,
        r#"" 5""#,
        r#""0""#,
        r#""31536001""#,
        r#""99999999999999999999999""#,
    ] {
        let mut world = World::new();
        let error = world.fetch(&good("t", told)).unwrap_err();
        assert!(matches!(error, TokenError::Malformed(_)), "{told}: {error}");
        assert_eq!(world.authorization(), None, "{told}");
    }
}

#[test]
fn what_is_no_bearer_token_is_a_failed_fetch() {
    for body in [
        "{}",
        "",
        "null",
        "[]",
        "invalid",
        "<html></html>",
        r#"{"access_token":""}"#,
        r#"{"access_token":null}"#,
        r#"{"access_token":5}"#,
        r#"{"access_token":"a b"}"#,
        r#"{"access_token":"a\r\nb: c"}"#,
        r#"{"access_token":"ä"}"#,
        r#"{"access_token":"t","token_type":"Basic"}"#,
    ] {
        let mut world = World::new();
        let error = world.fetch(&answer(200, body)).unwrap_err();
        assert!(matches!(error, TokenError::Malformed(_)), "{body}: {error}");
        assert_eq!(world.authorization(), None, "{body}");
    }
    for kind in ["Bearer", "bearer", "BEARER"] {
        let body = format!(r#"{{"access_token":"t","token_type":"{kind}","more":[1]}}"#);
        assert_eq!(World::new().fetch(&answer(200, &body)), Ok(()), "{kind}");
    }
}

#[test]
fn an_answer_beyond_the_bound_is_not_read() {
    let padding = " ".repeat(64 * 1024);
    let body = format!(r#"{{"access_token":"t"{padding}}}"#);
    let error = World::new().fetch(&answer(200, &body)).unwrap_err();
    assert!(matches!(error, TokenError::Malformed(_)), "{error}");
}

#[test]
fn refused_credentials_are_told_apart_from_an_endpoint_that_fails() {
    let refused = |status, error| Err(TokenError::Refused { status, error });
    let invalid = r#"{"error":"invalid_client","error_description":"canary"}"#;
    for (status, body, expected) in [
        (400, invalid, refused(400, Some("invalid_client"))),
        (401, invalid, refused(401, Some("invalid_client"))),
        (401, "", refused(401, None)),
        (403, "<html>", refused(403, None)),
        (
            400,
            r#"{"error":"unauthorized_client"}"#,
            refused(400, Some("unauthorized_client")),
        ),
        (
            400,
            r#"{"error":"invalid_request"}"#,
            Err(TokenError::Http(400)),
        ),
        (400, r#"{"error":"canary"}"#, Err(TokenError::Http(400))),
        (400, "", Err(TokenError::Http(400))),
        (404, "", Err(TokenError::Http(404))),
        (429, "", Err(TokenError::Http(429))),
        (500, invalid, Err(TokenError::Http(500))),
        (503, "", Err(TokenError::Http(503))),
        (204, "", Err(TokenError::Http(204))),
        (302, "", Err(TokenError::Http(302))),
        (307, r#"{"access_token":"t"}"#, Err(TokenError::Http(307))),
    ] {
        let mut world = World::new();
        let result = world.fetch(&answer(status, body));
        assert_eq!(result, expected, "{status} {body}");
        let error = result.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
    }
}

#[test]
fn there_is_one_fetch_at_a_time_however_many_ask() {
    let mut world = World::new();
    assert!(world.tokens.begin().is_some());
    for _ in 0..16 {
        assert!(world.tokens.begin().is_none());
        assert_eq!(world.tokens.due(world.now), None);
    }
    world
        .tokens
        .finish(world.now, Ok(&good("t", "60")))
        .unwrap();
    assert!(world.tokens.begin().is_some());
}

#[test]
fn a_fetch_whose_answer_never_comes_blocks_nothing_once_it_is_abandoned() {
    let mut world = World::new();
    world.tokens.begin().unwrap();
    world.tokens.abandon();
    assert!(world.is_due());
    assert!(world.tokens.begin().is_some());
}

#[test]
fn a_failed_fetch_is_repeated_five_seconds_after_its_failure() {
    let mut world = World::new();
    world.tokens.begin().unwrap();
    world.pass(9);
    world.tokens.finish(world.now, Err(broken())).unwrap_err();
    assert!(!world.is_due());
    assert!(world.tokens.is_throttled(world.now));
    world.pass(4);
    assert!(!world.is_due());
    world.pass(1);
    assert!(world.is_due());
    assert!(!world.tokens.is_throttled(world.now));
}

#[test]
fn who_asks_in_so_many_words_is_not_throttled() {
    let mut world = World::new();
    world.fetch(&answer(503, "")).unwrap_err();
    assert!(world.tokens.is_throttled(world.now));
    assert_eq!(world.fetch(&good("t", "60")), Ok(()));
    assert_eq!(world.requests, 2);
    assert!(!world.tokens.is_throttled(world.now));
}

#[test]
fn a_failed_refresh_keeps_serving_the_token_until_its_real_expiry() {
    // The endpoint is down for the last 50 s of a token's life.
    let mut world = World::new();
    world.fetch(&good("old", "240")).unwrap();
    world.pass(190);
    for second in 0..50 {
        if world.is_due() {
            world.fetch(&answer(503, "")).unwrap_err();
        }
        assert_eq!(world.generation(), Some(1), "second {second}");
        world.pass(1);
    }
    assert_eq!(world.requests, 1 + 10, "one failed fetch for each 5 s");
    assert_eq!(world.generation(), None, "expired");
    assert!(world.is_due());
    world.fetch(&good("new", "240")).unwrap();
    assert_eq!(world.authorization().as_deref(), Some("Bearer new"));
}

#[test]
fn a_failure_is_not_for_ever() {
    let mut world = World::new();
    for _ in 0..3 {
        world.fetch(&answer(401, "")).unwrap_err();
        world.pass(5);
        assert!(world.is_due());
    }
    world.fetch(&good("t", "60")).unwrap();
    assert_eq!(world.generation(), Some(1));
    assert_eq!(world.tokens.due(world.now), Some(world.now + secs(45)));
}

#[test]
fn a_rejected_token_is_never_served_again() {
    let mut world = World::new();
    world.fetch(&good("t", "3600")).unwrap();
    world.tokens.reject(1);
    assert_eq!(world.authorization(), None);
    assert!(world.is_due());
    // Not even when there is no other.
    world.fetch(&answer(503, "")).unwrap_err();
    assert_eq!(world.authorization(), None);
    assert!(!world.is_due(), "the throttle holds");
    assert_eq!(world.tokens.generation(), 1);
    world.fetch(&good("u", "3600")).unwrap();
    assert_eq!(world.generation(), Some(2));
}

#[test]
fn the_rejection_of_an_older_token_leaves_the_newer_one_alone() {
    let mut world = World::new();
    world.fetch(&good("a", "3600")).unwrap();
    world.fetch(&good("b", "3600")).unwrap();
    for late in [0, 1] {
        world.tokens.reject(late);
        assert_eq!(world.authorization().as_deref(), Some("Bearer b"));
    }
}

#[test]
fn a_rejection_while_a_fetch_is_under_way_leaves_what_that_brings_alone() {
    let mut world = World::new();
    world.fetch(&good("a", "3600")).unwrap();
    world.tokens.begin().unwrap();
    world.tokens.reject(1);
    world
        .tokens
        .finish(world.now, Ok(&good("b", "3600")))
        .unwrap();
    world.tokens.reject(1);
    assert_eq!(world.authorization().as_deref(), Some("Bearer b"));
}

#[test]
fn errors_tell_what_to_think_of_them() {
    for (error, text) in [
        (
            TokenError::Refused {
                status: 400,
                error: Some("invalid_client"),
            },
            "client id or secret refused (invalid_client, HTTP 400)",
        ),
        (
            TokenError::Refused {
                status: 403,
                error: None,
            },
            "client id or secret refused (HTTP 403)",
        ),
        (TokenError::Http(503), "HTTP 503"),
        (
            TokenError::Throttled,
            "the last try failed less than 5 s ago",
        ),
    ] {
        assert_eq!(error.to_string(), text);
    }
}

/// A token machine in virtual time.
struct World {
    tokens: TokenMachine,
    now: Instant,
    requests: u32,
}

impl World {
    fn new() -> Self {
        Self {
            tokens: TokenMachine::new("app", Secret::new("the secret")),
            now: Instant::now(),
            requests: 0,
        }
    }

    fn fetch(&mut self, answer: &Response<Bytes>) -> Result<(), TokenError> {
        let _: Request<Bytes> = self.tokens.begin().unwrap();
        self.requests += 1;
        self.tokens.finish(self.now, Ok(answer))
    }

    fn pass(&mut self, seconds: u64) {
        self.now += secs(seconds);
    }

    fn is_due(&self) -> bool {
        self.tokens.due(self.now).is_some_and(|due| due <= self.now)
    }

    fn generation(&self) -> Option<u64> {
        self.tokens
            .token(self.now)
            .map(chronicle_connection::Token::generation)
    }

    fn at(&self, seconds: u64) -> Option<u64> {
        let token = self.tokens.token(self.now + secs(seconds));
        token.map(chronicle_connection::Token::generation)
    }

    fn authorization(&self) -> Option<String> {
        let token = self.tokens.token(self.now)?;
        Some(token.authorization().to_str().unwrap().to_owned())
    }
}

fn good(token: &str, expires_in: &str) -> Response<Bytes> {
    let body =
        format!(r#"{{"access_token":"{token}","token_type":"Bearer","expires_in":{expires_in}}}"#);
    answer(200, &body)
}

fn answer(status: u16, body: &str) -> Response<Bytes> {
    let response = Response::builder().status(status);
    response
        .body(Bytes::copy_from_slice(body.as_bytes()))
        .unwrap()
}

fn broken() -> Failure {
    Failure::new(FailureKind::Reset, "")
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
