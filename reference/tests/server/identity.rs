//! Who may call: tokens, keys and client certificates.

use crate::client::{Client, tls};
use chronicle_reference_server::{
    Answer, Cluster, Server, ServerOptions, TlsVersions,
    model::{Authentication, ModelConfig},
    paths,
};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use std::time::Duration;
use tonic::body::Body;
use tower_service::Service as _;

#[tokio::test]
async fn without_a_token_calls_get_401_and_no_grpc_status() {
    let server = authenticated().await;
    let client = Client::new(&server).await;
    for path in [
        paths::CONNECT,
        paths::CONNECTION_KEEP_ALIVE,
        paths::ECHO_UNARY,
    ] {
        for headers in [&[][..], &[("authorization", "Bearer nonsense")]] {
            let (status, answer, _) = send(&client, Method::POST, path, headers, "").await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
            assert!(!answer.contains_key("grpc-status"), "{path}");
        }
    }
    assert_eq!(server.stats().credentials, 3);
}

#[tokio::test]
async fn count_reserve_check_and_descriptors_are_for_anybody() {
    let server = authenticated().await;
    let client = Client::new(&server).await;
    assert_eq!(client.get(paths::COUNT).await.1, "0");
    let reserve = send(&client, Method::POST, paths::RESERVE, &[], "").await;
    assert_eq!(reserve.0, StatusCode::OK);
    assert!(client.check().await.unwrap().is_compatible);
}

#[tokio::test]
async fn a_token_or_a_key_admits() {
    let server = authenticated().await;
    let client = Client::new(&server).await;
    let token = token(&client).await;
    for header in [
        ("authorization", format!("Bearer {token}")),
        ("api-key", "chronicle-dev-key".to_owned()),
    ] {
        let headers = [(header.0, header.1.as_str())];
        let answer = send(&client, Method::POST, paths::ECHO_UNARY, &headers, EMPTY).await;
        assert_eq!(answer.0, StatusCode::OK);
    }
}

#[tokio::test]
async fn tokens_expire_and_can_be_forgotten() {
    let server = authenticated().await;
    let client = Client::new(&server).await;
    let forgotten = token(&client).await;
    assert!(is_admitted(&client, &forgotten).await);
    server.faults().reset_tokens();
    assert!(!is_admitted(&client, &forgotten).await);
    server.faults().set(|faults| {
        let known = faults.model.authentication.as_mut().unwrap();
        known.token_life = Duration::from_secs(1);
    });
    let short = token(&client).await;
    assert_ne!(short, forgotten);
    while is_admitted(&client, &short).await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn servers_take_the_tokens_of_others_unless_told_not_to() {
    let options = || ServerOptions {
        model: model(),
        ..ServerOptions::default()
    };
    let cluster = Cluster::start_with([options(), options()]).await.unwrap();
    let [a, b] = cluster.servers() else {
        panic!("two servers");
    };
    let token = token(&Client::new(a).await).await;
    let client = Client::new(b).await;
    assert!(is_admitted(&client, &token).await);
    b.faults().set(|faults| {
        faults.model.authentication.as_mut().unwrap().trusts_others = false;
    });
    assert!(!is_admitted(&client, &token).await);
}

#[tokio::test]
async fn the_endpoint_refuses_wrong_credentials_and_other_grants() {
    let server = authenticated().await;
    let client = Client::new(&server).await;
    for (form, status, error) in [
        (
            "grant_type=client_credentials&client_id=chronicle-dev-client&client_secret=no",
            401,
            "invalid_client",
        ),
        ("grant_type=client_credentials", 401, "invalid_client"),
        ("grant_type=password", 400, "unsupported_grant_type"),
        ("", 400, "unsupported_grant_type"),
    ] {
        let answer = send(&client, Method::POST, paths::TOKEN, &[], form).await;
        assert_eq!(answer.0.as_u16(), status, "{form}");
        assert!(answer.2.contains(error), "{form}: {}", answer.2);
    }
}

#[tokio::test]
async fn the_endpoint_fails_in_each_way_it_is_told_to() {
    let server = authenticated().await;
    let client = Client::new(&server).await;
    let minute = Duration::from_secs(60);
    for (fault, status, part) in [
        (
            Answer::OAuth(400, "invalid_client".to_owned()),
            400,
            "invalid_client",
        ),
        (
            Answer::OAuth(401, "invalid_client".to_owned()),
            401,
            "invalid_client",
        ),
        (Answer::Http(403, "<html>".into()), 403, "<html>"),
        (
            Answer::Busy {
                retry_after: minute,
            },
            429,
            "",
        ),
        (Answer::Http(503, "".into()), 503, ""),
        (Answer::Http(200, "<html>".into()), 200, "<html>"),
        (Answer::Redirect("https://elsewhere/".to_owned()), 307, ""),
    ] {
        let set = fault.clone();
        server
            .faults()
            .set(|faults| faults.on(paths::TOKEN).answer = Some(set));
        let (code, headers, body) = send(&client, Method::POST, paths::TOKEN, &[], FORM).await;
        assert_eq!(code.as_u16(), status, "{fault:?}");
        assert!(body.contains(part), "{fault:?}: {body}");
        let is_busy = matches!(fault, Answer::Busy { .. });
        assert_eq!(headers.contains_key("retry-after"), is_busy);
        assert_eq!(headers.contains_key("location"), status == 307);
    }
}

#[tokio::test]
async fn without_authentication_there_is_no_endpoint_and_nobody_is_asked() {
    let server = crate::start().await;
    let client = Client::new(&server).await;
    let answer = send(&client, Method::POST, paths::TOKEN, &[], FORM).await;
    assert_eq!(answer.0, StatusCode::NOT_FOUND);
    assert!(is_admitted(&client, "whatever").await);
}

#[tokio::test]
async fn a_server_speaks_the_versions_of_tls_it_is_told_to() {
    use rustls::ProtocolVersion::{TLSv1_2, TLSv1_3};
    for (versions, expected) in [
        (TlsVersions::Both, TLSv1_3),
        (TlsVersions::Tls12, TLSv1_2),
        (TlsVersions::Tls13, TLSv1_3),
    ] {
        let options = ServerOptions {
            tls: versions,
            ..ServerOptions::default()
        };
        let server = Server::start(options).await.unwrap();
        let stream = tls(&server, "localhost", &[b"h2"]).await.unwrap();
        assert_eq!(stream.get_ref().1.protocol_version(), Some(expected));
    }
}

#[tokio::test]
async fn a_certificate_can_be_for_years_to_come() {
    let options = ServerOptions {
        not_yet_valid: true,
        ..ServerOptions::default()
    };
    let server = Server::start(options).await.unwrap();
    let error = tls(&server, "localhost", &[b"h2"]).await.unwrap_err();
    assert!(error.to_string().contains("not valid yet"), "{error}");
}

#[tokio::test]
async fn a_client_without_the_certificate_that_is_required_gets_nothing() {
    let options = ServerOptions {
        client_roots: Some(crate::start().await.certificate_pem().to_owned()),
        ..ServerOptions::default()
    };
    let server = Server::start(options).await.unwrap();
    // With TLS 1.3 the client is done before the server has looked.
    if let Ok(mut stream) = tls(&server, "localhost", &[b"h2"]).await {
        let mut byte = [0];
        let read = tokio::io::AsyncReadExt::read(&mut stream, &mut byte).await;
        assert!(
            read.unwrap_err()
                .to_string()
                .contains("CertificateRequired")
        );
    }
    assert_eq!(server.stats().handshakes, 0);
}

async fn authenticated() -> Server {
    let options = ServerOptions {
        model: model(),
        ..ServerOptions::default()
    };
    Server::start(options).await.unwrap()
}

fn model() -> ModelConfig {
    ModelConfig {
        authentication: Some(Authentication::default()),
        ..ModelConfig::default()
    }
}

async fn token(client: &Client) -> String {
    let (status, _, body) = send(client, Method::POST, paths::TOKEN, &[], FORM).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let (_, rest) = body.split_once(r#""access_token":""#).unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}

async fn is_admitted(client: &Client, token: &str) -> bool {
    let header = format!("Bearer {token}");
    let headers = [("authorization", header.as_str())];
    let answer = send(client, Method::POST, paths::ECHO_UNARY, &headers, EMPTY).await;
    answer.0 == StatusCode::OK
}

async fn send(
    client: &Client,
    method: Method,
    path: &str,
    headers: &[(&'static str, &str)],
    body: &'static str,
) -> (StatusCode, HeaderMap, String) {
    let content_type = match path {
        paths::TOKEN => "application/x-www-form-urlencoded",
        _ => "application/grpc",
    };
    let mut request = Request::builder()
        .method(method)
        .uri(format!("https://localhost{path}"))
        .header("content-type", content_type);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = Body::new(Full::new(bytes::Bytes::from_static(body.as_bytes())));
    let mut client = client.clone();
    let answer = client.call(request.body(body).unwrap()).await.unwrap();
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let body = String::from_utf8_lossy(&body).into_owned();
    (parts.status, parts.headers, body)
}

const FORM: &str = "grant_type=client_credentials&client_id=chronicle-dev-client\
    &client_secret=chronicle-dev-secret";
/// An empty message.
const EMPTY: &str = "\0\0\0\0\0";
