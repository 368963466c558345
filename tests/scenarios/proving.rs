//! Who a client is: tokens and keys, in the session and in the calls of the application.

use super::{
    stack::{Stack, StackBuilder, StackClient},
    world::{World, echo, impatient, impatient_timing, quick},
};
use chronicle_connection_driver::{
    Client, Retryable, Runtime,
    core::{
        self, ConnectionString, Contract, CredentialsError, Event, FatalError, Request, Schema,
        Timing, TokenError,
    },
};
use chronicle_reference_server::{
    Answer,
    echo::{Payload, StreamRequest},
    model::Authentication,
    paths,
};
use futures_util::{StreamExt as _, future::join_all, stream};
use std::time::Duration;
use tonic::{Code, Status, metadata::MetadataValue};

pub(crate) async fn a_token_goes_with_calls_of_every_shape_and_replaces_what_the_caller_left<
    R: Runtime,
>() {
    let world = authenticated::<R>(1).await;
    let client = connect(&world, CREDENTIALS).await;
    let mut echo = echo(client.channel());
    let mut request = tonic::Request::new(Payload::default());
    let metadata = request.metadata_mut();
    metadata.append("authorization", MetadataValue::from_static("Custom a"));
    metadata.append("authorization", MetadataValue::from_static("Custom b"));
    metadata.append("x-tenant", MetadataValue::from_static("blue"));
    let got = echo.unary(request).await.unwrap().into_inner().metadata;
    let of = |name: &str| -> Vec<_> {
        got.iter()
            .filter(|entry| entry.starts_with(name))
            .map(String::as_str)
            .collect()
    };
    let token = format!("authorization: Bearer token{}-1", world.servers()[0].port());
    assert_eq!(of("authorization"), [token.as_str()]);
    assert_eq!(of("x-tenant"), ["x-tenant: blue"]);

    let answers = echo.stream(StreamRequest {
        count: 3,
        ..StreamRequest::default()
    });
    let answers = answers.await.unwrap().into_inner();
    assert_eq!(answers.collect::<Vec<_>>().await.len(), 3);
    let answers = echo.duplex(stream::iter([Payload::default()]));
    let answers = answers.await.unwrap().into_inner();
    assert_eq!(answers.collect::<Vec<_>>().await.len(), 1);
    assert_eq!(world.requests(paths::TOKEN), 1);
}

pub(crate) async fn an_api_key_is_enough<R: Runtime>() {
    let world = authenticated::<R>(1).await;
    let string = world.string_with("&apiKey=chronicle-dev-key");
    let client = impatient(Client::<R>::builder(string)).connect();
    let client = world.soon("a session", client).await.unwrap();
    let answer = echo(client.channel()).unary(Payload::default()).await;
    answer.unwrap();
    assert_eq!(world.requests(paths::TOKEN), 0);
}

/// Tokens expire, and a server that begins a new store knows none of them: neither ends a session.
pub(crate) async fn a_session_outlives_its_tokens_and_those_that_a_server_forgets<R: Stack>() {
    let hour = Duration::from_secs(3600);
    for (life, is_reset) in [(Duration::from_secs(1), false), (hour, true)] {
        let world = authenticated::<R>(1).await;
        world.set(0, |faults| {
            let known = faults.model.authentication.as_mut().unwrap();
            known.token_life = life;
        });
        let connecting = builder(&world, CREDENTIALS).connect();
        let client = world.soon("a session", connecting).await.unwrap();
        let session = client.session().unwrap();
        let answers = async || {
            let count = || world.requests(paths::CONNECTION_KEEP_ALIVE);
            let before = count();
            world.until("answers", || count() > before + 5).await;
        };
        answers().await;
        if is_reset {
            assert_eq!(world.requests(paths::TOKEN), 1);
            world.servers()[0].faults().reset_tokens();
        }
        let renewed = || world.requests(paths::TOKEN) > 1;
        world.until("new token", renewed).await;
        answers().await;
        assert_eq!(client.session().as_ref(), Some(&session));
        assert!(world.knows(0, &session));
    }
}

pub(crate) async fn a_refused_client_is_told_at_once_and_the_endpoint_is_asked_once<R: Stack>() {
    let world = authenticated::<R>(2).await;
    let error = world.refused(builder(&world, "app:wrong@")).await;
    let refused = TokenError::Refused {
        status: 401,
        error: Some("invalid_client"),
    };
    assert_eq!(credentials_error(error), CredentialsError::Token(refused));
    assert_eq!(world.requests(paths::TOKEN), 1);

    let error = credentials_error(world.refused(builder(&world, "")).await);
    assert!(
        matches!(
            error,
            CredentialsError::Refused {
                request: Request::Connect,
                had_credentials: false,
                ..
            }
        ),
        "{error}"
    );
    let error = world.refused(impatient(R::client(world.string_with("&apiKey=wrong"))));
    let error = credentials_error(error.await);
    let had = matches!(
        error,
        CredentialsError::Refused {
            had_credentials: true,
            ..
        }
    );
    assert!(had, "{error}");
}

pub(crate) async fn an_endpoint_that_fails_is_survived_in_each_way<R: Stack>() {
    for fault in [
        Answer::Busy {
            retry_after: Duration::from_secs(1),
        },
        Answer::Http(503, "".into()),
        Answer::Http(200, "<html></html>".into()),
        Answer::Http(200, vec![b' '; 1024 * 1024].into()),
        Answer::OAuth(400, "invalid_request".to_owned()),
        Answer::Hang,
    ] {
        let world = authenticated::<R>(1).await;
        world.set(0, |faults| {
            faults.on(paths::TOKEN).answer = Some(fault.clone());
        });
        let timing = Timing {
            token: Duration::from_millis(200),
            ..impatient_timing()
        };
        let client = builder(&world, CREDENTIALS).timing(timing).start().unwrap();
        let mut events = client.events();
        let what = format!("failed fetch for {fault:?}");
        world
            .event(&mut events, &what, |event| match event {
                Event::Token { error: Some(_), .. } => Some(()),
                _ => None,
            })
            .await;
        world.set(0, |faults| faults.on(paths::TOKEN).answer = None);
        world.connected(&mut events).await;
    }
}

pub(crate) async fn a_redirect_of_the_token_endpoint_is_not_followed<R: Stack>() {
    let world = authenticated::<R>(2).await;
    let elsewhere = world.servers()[1].endpoint();
    world.set(0, |faults| {
        let to = format!("https://{elsewhere}{}", paths::TOKEN);
        faults.on(paths::TOKEN).answer = Some(Answer::Redirect(to));
    });
    let string = format!(
        "chronicle://{CREDENTIALS}{}?skipTlsValidation=true",
        world.servers()[0].endpoint()
    );
    let client = impatient(R::client(string.parse().unwrap()));
    let client = client.start().unwrap();
    let mut events = client.events();
    let error = world.event(&mut events, "failed fetch", |event| match event {
        Event::Token { error, .. } => error.clone(),
        _ => None,
    });
    assert_eq!(error.await, TokenError::Http(307));
    assert_eq!(world.stats(1).accepted, 0);
}

pub(crate) async fn nothing_secret_goes_to_servers_that_were_not_chosen_or_not_trusted<
    R: Runtime,
>() {
    // Three servers; the certificate of one does not pass, and it counts lowest.
    let world = authenticated::<R>(3).await;
    for index in [0, 1] {
        world.set(index, |faults| {
            faults.on(paths::COUNT).answer = Some(Answer::Http(200, "7".into()));
        });
    }
    let [a, b, c] = world.servers() else {
        panic!("three servers");
    };
    let roots = [a.certificate_pem(), b.certificate_pem()].concat();
    let string = format!(
        "chronicle://{CREDENTIALS}{},{},{}",
        a.endpoint(),
        b.endpoint(),
        c.endpoint()
    );
    let client = impatient(Client::<R>::builder(string.parse().unwrap())).extra_roots(roots);
    let client = world.soon("a session", client.connect()).await.unwrap();
    let chosen = world.server_of(&client.session().unwrap());
    assert_ne!(chosen, 2);
    echo(client.channel())
        .unary(Payload::default())
        .await
        .unwrap();
    for index in 0..3 {
        let had = world.stats(index).credentials;
        assert_eq!(had > 0, index == chosen, "server {index} got {had}");
    }
    assert_eq!(world.stats(2).handshakes, 0);
}

pub(crate) async fn failover_keeps_the_token_and_renews_it_where_it_is_refused<R: Runtime>() {
    for trusts_others in [true, false] {
        let mut world = authenticated::<R>(2).await;
        world.set_all(|faults| {
            let known = faults.model.authentication.as_mut().unwrap();
            known.trusts_others = trusts_others;
        });
        let client = connect(&world, CREDENTIALS).await;
        let mut events = client.events();
        let first = world.connected(&mut events).await;
        world.kill(world.server_of(&first)).await;
        let second = world.connected(&mut events).await;
        assert_ne!(first.server, second.server);
        echo(client.channel())
            .unary(Payload::default())
            .await
            .unwrap();
        let fetches = if trusts_others { 1 } else { 2 };
        assert_eq!(world.requests(paths::TOKEN), fetches);
    }
}

pub(crate) async fn tokens_of_a_second_are_renewed_without_a_refused_call<R: Runtime>() {
    let world = authenticated::<R>(1).await;
    world.set(0, |faults| {
        let known = faults.model.authentication.as_mut().unwrap();
        known.token_life = Duration::from_secs(1);
    });
    let client = connect(&world, CREDENTIALS).await;
    let mut echo = echo(client.channel());
    while world.requests(paths::TOKEN) < 5 {
        echo.unary(Payload::default()).await.unwrap();
    }
    assert_eq!(client.session().map(|session| session.generation), Some(1));
}

pub(crate) async fn refused_calls_share_one_new_token_and_are_sent_once_more<R: Runtime>() {
    let world = quiet::<R>().await;
    let client = settled(&world).await;
    let channel = client.channel();
    let before = world.requests(paths::ECHO_UNARY);
    world.servers()[0].faults().reset_tokens();
    let calls = (0..16).map(|_| {
        let mut echo = echo(channel.clone());
        async move { echo.unary(payload(1000)).await }
    });
    for answer in join_all(calls).await {
        assert_eq!(answer.unwrap().into_inner().data.len(), 1000);
    }
    assert_eq!(world.requests(paths::TOKEN), 2);
    let sent = world.requests(paths::ECHO_UNARY) - before;
    assert!((17..=32).contains(&sent), "{sent}");
}

pub(crate) async fn what_must_not_be_sent_twice_is_not<R: Runtime>() {
    let world = quiet::<R>().await;
    let client = settled(&world).await;
    let reset = || world.servers()[0].faults().reset_tokens();
    let channel = client.channel();
    let question = || StreamRequest {
        count: 2,
        ..StreamRequest::default()
    };
    // A stream is not sent twice unless its caller says so; nor is what is longer than 1 MiB.
    reset();
    let refused = echo(channel.clone()).stream(question()).await;
    assert_eq!(code(refused), Code::Unauthenticated);
    let mut large = echo(channel.clone());
    let refused = large.unary(payload(1024 * 1024 + 1)).await;
    assert_eq!(code(refused), Code::Unauthenticated);
    assert_eq!(world.requests(paths::ECHO_STREAM), 1);
    assert_eq!(world.requests(paths::ECHO_UNARY), 2);
    assert_eq!(world.requests(paths::TOKEN), 1);

    let mut request = tonic::Request::new(question());
    request.extensions_mut().insert(Retryable);
    let answers = echo(channel.clone()).stream(request).await.unwrap();
    assert_eq!(answers.into_inner().collect::<Vec<_>>().await.len(), 2);
    assert_eq!(world.requests(paths::ECHO_STREAM), 3);
    assert_eq!(world.requests(paths::TOKEN), 2);

    // Other refusals are final.
    for answer in [
        Answer::Grpc(core::Code::Unavailable, String::new()),
        Answer::Http(503, "".into()),
    ] {
        let before = world.requests(paths::ECHO_UNARY);
        world.set(0, |faults| {
            faults.on(paths::ECHO_UNARY).answer = Some(answer.clone());
        });
        let refused = echo(channel.clone()).unary(Payload::default()).await;
        assert_eq!(code(refused), Code::Unavailable);
        assert_eq!(world.requests(paths::ECHO_UNARY), before + 1);
    }
}

pub(crate) async fn a_call_is_refused_twice_at_most<R: Runtime>() {
    for answer in [
        Answer::Http(401, "".into()),
        Answer::Grpc(core::Code::Unauthenticated, "who?".to_owned()),
    ] {
        let world = quiet::<R>().await;
        let client = connect(&world, CREDENTIALS).await;
        world.set(0, |faults| {
            faults.on(paths::ECHO_UNARY).answer = Some(answer.clone());
        });
        let refused = echo(client.channel()).unary(Payload::default()).await;
        assert_eq!(code(refused), Code::Unauthenticated);
        assert_eq!(world.requests(paths::ECHO_UNARY), 2);
        assert_eq!(world.requests(paths::TOKEN), 2);

        // Without a new token it is not even sent twice, and all who waited are told the same.
        world.set(0, |faults| {
            faults.on(paths::TOKEN).answer = Some(Answer::Http(503, "".into()));
        });
        let channel = client.channel();
        let calls = (0..8).map(|_| {
            let mut echo = echo(channel.clone());
            async move { echo.unary(Payload::default()).await }
        });
        for refused in world.soon("end of the calls", join_all(calls)).await {
            assert_eq!(code(refused), Code::Unauthenticated);
        }
        assert_eq!(world.requests(paths::ECHO_UNARY), 10);
        assert_eq!(world.requests(paths::TOKEN), 3);
    }
}

/// A server whose sessions do not notice before an application that their token is forgotten.
async fn quiet<R: Runtime>() -> World<R> {
    let mut options = quick();
    options.model.authentication = Some(Authentication::default());
    options.model.keep_alive_interval = Duration::from_secs(4);
    World::with(vec![options]).await
}

/// A client of that server which has answered the first keep-alive.
async fn settled<R: Runtime>(world: &World<R>) -> Client<R> {
    let client = connect(world, CREDENTIALS).await;
    let answered = || world.requests(paths::CONNECTION_KEEP_ALIVE) > 0;
    world.until("answer", answered).await;
    // A round trip later the answer has been admitted as well.
    let answer = echo(client.channel()).unary(Payload::default()).await;
    answer.unwrap();
    client
}

/// Servers that ask who calls.
async fn authenticated<R: Stack>(servers: usize) -> World<R> {
    let mut options = quick();
    options.model.authentication = Some(Authentication::default());
    World::with(vec![options; servers]).await
}

fn string<R: Stack>(world: &World<R>, credentials: &str) -> ConnectionString {
    let string = world.string().to_string_with_secrets();
    let (scheme, rest) = string.split_once("://").unwrap();
    format!("{scheme}://{credentials}{rest}").parse().unwrap()
}

/// With the contract of the application, which says what is unary.
fn builder<R: Stack>(world: &World<R>, credentials: &str) -> R::Builder {
    let echo = Schema::from_source_text(include_str!("../../reference/protos/echo.proto"));
    let echo = echo.unwrap().descriptor_set().clone();
    let contract = Contract::from_descriptor_set(echo, "18.5.0").unwrap();
    impatient(R::client(string(world, credentials))).contract(contract)
}

async fn connect<R: Runtime>(world: &World<R>, credentials: &str) -> Client<R> {
    let connecting = builder(world, credentials).connect();
    world.soon("a session", connecting).await.unwrap()
}

fn payload(length: usize) -> Payload {
    Payload {
        data: vec![1; length],
        ..Payload::default()
    }
}

fn code<T>(answer: Result<T, Status>) -> Code {
    answer.map_or_else(|status| status.code(), |_| Code::Ok)
}

fn credentials_error(error: FatalError) -> CredentialsError {
    match error {
        FatalError::Credentials { error, .. } => error,
        other => panic!("{other}"),
    }
}

const CREDENTIALS: &str = "chronicle-dev-client:chronicle-dev-secret@";
