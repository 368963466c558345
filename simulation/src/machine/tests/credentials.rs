//! The rules for credentials can be broken.

use super::*;
use http::HeaderValue;

#[test]
fn a_secret_in_an_event() {
    let keyed = Setup::new("chronicle://s1,s2?apiKey=canary7").exact();
    connected_with(&keyed)
        .inserted(told("the key canary7"), is_count)
        .breaks("a secret");
    assert_eq!(
        connected_with(&keyed)
            .inserted(told("the key"), is_count)
            .broken(),
        None
    );
}

#[test]
fn a_token_in_an_event() {
    let mut life = with_a_token();
    for number in 2..=12 {
        let rejected = number - 1;
        life.input(Command::RefreshToken { rejected });
        life.reply(life.last(Request::Token), token(number));
    }
    assert_eq!(life.broken(), None);
    // Those of connection string, first and last; so many are remembered, and no more.
    for (text, is_secret) in [
        ("canary0", true),
        ("canary5", false),
        ("canary6", true),
        ("canary11", true),
        ("canary12", true),
    ] {
        let mut life = life.clone();
        if let Some(last) = life.steps.last_mut() {
            last.outputs.push(Output::Event(told(text)));
        }
        match is_secret {
            true => life.breaks("a secret"),
            false => assert_eq!(life.broken(), None, "{text}"),
        }
    }
}

/// Adds a key to the requests that fit.
fn keyed(life: Life, fits: impl Fn(&Output) -> bool) -> Life {
    let key = HeaderValue::from_static("canary");
    life.with(|output| {
        let is_it = fits(output);
        let headers = match output {
            Output::Http { request, .. } => request.headers_mut(),
            Output::Unary(call) | Output::ServerStream(call) => &mut call.metadata,
            _ => return,
        };
        if is_it {
            headers.insert("api-key", key.clone());
        }
    })
}

#[test]
fn credentials_for_who_must_not_have_them() {
    for request in [
        Request::Count,
        Request::Reserve,
        Request::CheckCompatibility,
        Request::Token,
    ] {
        keyed(with_a_token(), |output| request_of(output) == Some(request))
            .breaks(&format!("{request} carries credentials"));
    }
    let of_text = |output: &Output| request_of(output) == Some(Request::GetDescriptorSet);
    keyed(judged_here(), of_text).breaks("GetDescriptorSet carries credentials");
}

#[test]
fn credentials_that_only_another_server_wanted() {
    let mut life = asked(&Setup::new("chronicle://s1,s2?apiKey=canary7").exact());
    let is_check = |output: &Output| request_of(output) == Some(Request::CheckCompatibility);
    let refused = status(Code::Unauthenticated);
    life.reply(life.last(Request::CheckCompatibility), refused.clone());
    assert_eq!(life.ids(is_check).len(), 2, "once more with the key");
    life.reply(
        life.last(Request::CheckCompatibility),
        status(Code::Unavailable),
    );
    let checks = life.ids(is_check);
    assert_eq!(checks.len(), 3, "the next server");
    assert_eq!(life.broken(), None);
    keyed(life, |output| id_of(output) == Some(checks[2])).breaks("carries credentials");
}

#[test]
fn credentials_for_a_server_that_was_not_chosen() {
    let life = with_a_token();
    let other = life.ids(is_dial)[1];
    let astray = |output: &mut Output| {
        if request_of(output) == Some(Request::Token)
            && let Output::Http { on, .. } = output
        {
            *on = other;
        }
    };
    life.with(astray).breaks("that was not chosen");
}

#[test]
fn a_token_that_was_rejected() {
    // The machine did not hear of it.
    let unheard = |mut life: Life, rejected| {
        let last = life.steps.len() - 1;
        life.steps.push(Step {
            input: Command::RefreshToken { rejected }.into(),
            outputs: vec![],
            ..life.steps[last].clone()
        });
        life
    };
    let rule = "token 1 is served, and 1 was rejected";
    unheard(with_a_token(), 1).breaks(rule);
    unheard(with_a_token(), 7).breaks(rule);
    assert_eq!(unheard(with_a_token(), 0).broken(), None);

    // Of tokens that are yet to come, nobody can know.
    let mut life = with_a_token();
    life.input(Command::RefreshToken { rejected: 7 });
    life.reply(life.last(Request::Token), token(2));
    assert_eq!(life.broken(), None);
}

fn told(text: &str) -> Event {
    Event::ReserveFailed {
        server: endpoint("s1"),
        cause: chronicle_connection::CallError::Malformed(text.to_owned()),
    }
}
