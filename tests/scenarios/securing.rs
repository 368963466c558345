//! TLS: whom a client trusts, and what it says of the others.

use super::{
    stack::{Stack, StackBuilder, StackClient},
    world::{World, impatient, quick},
};
use chronicle_connection_driver::{
    Client, ConnectError, Runtime, TlsSetupError,
    core::{CandidateError, ConfigError, FailureKind, TlsFailure},
};
use chronicle_reference_server::{Alpn, ServerOptions, TlsVersions};
use std::{
    env, fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
};

pub(crate) async fn a_certificate_that_nobody_vouches_for_is_refused<R: Stack>() {
    let world = World::<R>::start(2).await;
    let [server, other] = world.servers() else {
        panic!("not two servers");
    };
    // The same name and another key, as after a restart.
    let builder = validating::<R>("127.0.0.1", server.port()).extra_roots(other.certificate_pem());
    let (failure, text) = tls_failure(&world, builder).await;
    assert_eq!(failure, TlsFailure::UnknownIssuer, "{text}");
    assert!(text.contains("unknown issuer"), "{text}");
    assert_eq!(world.sum(|stats| stats.handshakes), 0);
}

pub(crate) async fn extra_roots_vouch_for_a_server_by_name_and_by_address<R: Stack>() {
    let world = World::<R>::start(1).await;
    let server = &world.servers()[0];
    for host in ["127.0.0.1", "localhost", "LOCALHOST."] {
        let builder = validating::<R>(host, server.port()).extra_roots(server.certificate_pem());
        let client = world.soon("a session", builder.connect()).await.unwrap();
        assert!(client.session().is_some());
        client.close().await;
    }
}

pub(crate) async fn what_is_wrong_with_the_tls_of_a_server_is_told_apart<R: Stack>() {
    let elsewhere = ServerOptions {
        names: vec!["elsewhere.example".to_owned()],
        ..quick()
    };
    let expired = ServerOptions {
        expired: true,
        ..quick()
    };
    let future = ServerOptions {
        not_yet_valid: true,
        ..quick()
    };
    let world = World::<R>::with(vec![elsewhere, expired, future, quick(), quick()]).await;
    world.set(3, |faults| faults.alpn = Alpn::Http1);
    world.set(4, |faults| faults.alpn = Alpn::Unknown);
    for (server, expected) in world.servers().iter().zip([
        TlsFailure::WrongName,
        TlsFailure::Expired,
        TlsFailure::NotYetValid,
        TlsFailure::NoHttp2,
        TlsFailure::NoHttp2,
    ]) {
        let builder = validating::<R>("127.0.0.1", server.port());
        let (failure, text) =
            tls_failure(&world, builder.extra_roots(server.certificate_pem())).await;
        assert_eq!(failure, expected, "{text}");
        assert!(text.contains(&expected.to_string()), "{text}");
    }
}

pub(crate) async fn sessions_come_up_over_tls_1_2_and_1_3<R: Stack>() {
    for tls in [TlsVersions::Tls12, TlsVersions::Tls13] {
        let world = World::<R>::with(vec![ServerOptions { tls, ..quick() }]).await;
        let server = &world.servers()[0];
        let builder = validating::<R>("localhost", server.port());
        let builder = builder.extra_roots(server.certificate_pem());
        world.soon("a session", builder.connect()).await.unwrap();
    }
}

pub(crate) async fn a_server_may_ask_for_a_client_certificate<R: Runtime>() {
    let (certificate, key) = client_certificate("client");
    let (stranger, strange_key) = client_certificate("stranger");
    let pem = [certificate.as_str(), &key].concat();
    for tls in [TlsVersions::Tls12, TlsVersions::Tls13] {
        let options = ServerOptions {
            tls,
            client_roots: Some(certificate.clone()),
            ..quick()
        };
        let world = World::<R>::with(vec![options]).await;
        let port = world.servers()[0].port();
        let file = env::temp_dir().join(format!("chronicle-client-{port}.pem"));
        fs::write(&file, &pem).unwrap();
        let path = file.display().to_string();
        let in_string = format!("&certificatePath={path}");
        for builder in [
            world.builder().client_certificate(pem.as_str()),
            world.builder().client_certificate_path(path.as_str()),
            impatient(Client::builder(world.string_with(&in_string))),
        ] {
            let client = world.soon("a session", builder.connect()).await.unwrap();
            client.close().await;
        }
        fs::remove_file(&file).unwrap();

        let strange = [stranger.as_str(), &strange_key].concat();
        for builder in [world.builder(), world.builder().client_certificate(strange)] {
            let text = world.failed_attempt(builder).await.to_string();
            assert!(
                text.contains("asks for a client certificate"),
                "{tls:?}: {text}"
            );
        }

        let missing = world
            .builder()
            .client_certificate_path(path.as_str())
            .start();
        let error = missing.err().unwrap();
        assert!(
            matches!(
                error,
                ConnectError::Tls(TlsSetupError::CertificateFile { .. })
            ),
            "{error}"
        );
        let twice = world.builder().client_certificate(pem.as_str());
        let error = twice.client_certificate_path("other.pem").start().err();
        let contradiction = ConfigError::Contradiction("certificatePath");
        assert_eq!(error, Some(ConnectError::Config(contradiction)));
    }
}

pub(crate) async fn a_server_without_tls_is_told_as_such<R: Stack>() {
    let world = World::<R>::start(1).await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // Ends with the process.
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let _ = socket.read(&mut [0; 1024]);
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
        }
    });
    let root = world.servers()[0].certificate_pem();
    let builder = validating::<R>("127.0.0.1", port).extra_roots(root);
    let (failure, text) = tls_failure(&world, builder).await;
    assert_eq!(failure, TlsFailure::NotTls, "{text}");

    // In a cluster it is one server that is out.
    let other = world.servers()[0].endpoint();
    let string = format!("chronicle://127.0.0.1:{port},{other}/?skipTlsValidation=true");
    let connecting = impatient(R::client(string.parse().unwrap())).connect();
    let client = world.soon("a session", connecting).await.unwrap();
    assert_eq!(world.server_of(&client.session().unwrap()), 0);
}

/// Whoever asks for validation gets it.
pub(crate) async fn validation_asked_for_in_code_or_string_is_on<R: Stack>() {
    let world = World::<R>::start(2).await;
    let [server, other] = world.servers() else {
        panic!("not two servers");
    };
    for (in_string, in_code) in [(true, false), (false, true)] {
        let endpoint = server.endpoint();
        let string = format!("chronicle://{endpoint}/?skipTlsValidation={in_string}");
        let builder = impatient(R::client(string.parse().unwrap()))
            .skip_tls_validation(in_code)
            .extra_roots(other.certificate_pem());
        let (failure, text) = tls_failure(&world, builder).await;
        assert_eq!(failure, TlsFailure::UnknownIssuer, "{text}");
    }
}

/// A certificate and its key, as PEM.
fn client_certificate(name: &str) -> (String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut certificate = rcgen::CertificateParams::default();
    let subject = &mut certificate.distinguished_name;
    subject.push(rcgen::DnType::CommonName, name);
    let certificate = certificate.self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

/// A client that validates.
fn validating<R: Stack>(host: &str, port: u16) -> R::Builder {
    let string = format!("chronicle://{host}:{port}");
    impatient(R::client(string.parse().unwrap()))
}

/// Why the only server cannot be connected, and the error's text.
async fn tls_failure<R: Stack>(world: &World<R>, builder: R::Builder) -> (TlsFailure, String) {
    let error = world.failed_attempt(builder).await;
    let text = error.to_string();
    match &error.candidates[0].1 {
        Some(CandidateError::Unreachable(failure)) => match failure.kind {
            FailureKind::Tls(reason) => (reason, text),
            other => panic!("{other:?}: {text}"),
        },
        other => panic!("{other:?}"),
    }
}
