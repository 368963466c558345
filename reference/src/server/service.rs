//! The services of a server, gRPC and HTTP, as one router.

use super::{
    faults::Answer,
    shared::{ConnectStream, Shared, status},
};
use crate::{
    echo::{
        Payload, StreamRequest,
        echo_server::{Echo, EchoServer},
    },
    paths,
};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request as HttpRequest,
    http::{HeaderMap, StatusCode, header},
    middleware::{Next, from_fn},
    response::{IntoResponse as _, Response as HttpResponse},
    routing::{get, post},
};
use chronicle_connection::{Code, Status as CoreStatus};
use chronicle_connection_proto::{
    clients::{
        CompatibilityRequest, CompatibilityResponse, ConnectRequest, ConnectionKeepAlive,
        DescriptorSetResponse,
        connection_service_server::{ConnectionService, ConnectionServiceServer},
    },
    host::{
        ServerVersionInfo,
        server_server::{Server, ServerServer},
    },
};
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use std::sync::Arc;
use tonic::{
    Request, Response, Status, Streaming, async_trait, metadata::KeyAndValueRef, service::Routes,
};

pub(super) fn router(services: Routes, shared: Arc<Shared>) -> Router {
    let service = Service(shared.clone());
    let (counting, reserving, issuing) = (shared.clone(), shared.clone(), shared.clone());
    services
        .add_service(ConnectionServiceServer::new(service.clone()))
        .add_service(ServerServer::new(service.clone()))
        .add_service(EchoServer::new(service))
        .into_axum_router()
        .route(
            paths::COUNT,
            get(async move || json(counting.model(|model, now| model.count(now)))),
        )
        .route(
            paths::RESERVE,
            post(async move || reserving.model(|model, now| model.reserve(now))),
        )
        .route(
            paths::TOKEN,
            post(async move |form: Bytes| issuing.model(|model, now| model.token(now, &form))),
        )
        .fallback(unknown)
        .layer(from_fn(move |request, next| {
            intercept(shared.clone(), request, next)
        }))
}

/// Counts every request, lets the faults answer first, and asks who calls.
async fn intercept(shared: Arc<Shared>, request: HttpRequest, next: Next) -> HttpResponse {
    let path = request.uri().path();
    if path == paths::TOKEN || carries_credentials(request.headers()) {
        shared.count(|stats| stats.credentials += 1);
    }
    match shared.intercept(path).await {
        None if shared.model(|model, now| model.admits(now, path, request.headers())) => {
            next.run(request).await
        }
        None => {
            let bearer = [(header::WWW_AUTHENTICATE, "Bearer")];
            (StatusCode::UNAUTHORIZED, bearer).into_response()
        }
        Some(Answer::Grpc(code, message)) => status(code, &message).into_http(),
        Some(Answer::Http(code, body)) => {
            let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            html(code, body)
        }
        Some(Answer::OAuth(code, error)) => {
            let body = format!(r#"{{"error":"{error}","error_description":"as told"}}"#);
            let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (code, [(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
        Some(Answer::Busy { retry_after }) => {
            let seconds = retry_after.as_secs().to_string();
            (
                StatusCode::TOO_MANY_REQUESTS,
                [(header::RETRY_AFTER, seconds)],
            )
                .into_response()
        }
        Some(Answer::Redirect(to)) => {
            (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to)]).into_response()
        }
        // Its end was waited for.
        Some(Answer::Hang) => status(Code::Internal, "hung").into_http(),
    }
}

fn carries_credentials(headers: &HeaderMap) -> bool {
    headers.contains_key(header::AUTHORIZATION) || headers.contains_key("api-key")
}

/// tonic's router would answer 200 and UNIMPLEMENTED to a browser too.
async fn unknown(headers: HeaderMap) -> HttpResponse {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .map(|value| value.as_bytes());
    if content_type.is_some_and(|value| value.starts_with(b"application/grpc")) {
        return Status::unimplemented("Service is unimplemented.").into_http();
    }
    html(
        StatusCode::NOT_FOUND,
        "<html><body>404 Not Found</body></html>",
    )
}

fn html(code: StatusCode, body: impl Into<Body>) -> HttpResponse {
    (code, [(header::CONTENT_TYPE, "text/html")], body.into()).into_response()
}

fn json(count: u64) -> HttpResponse {
    (
        [(header::CONTENT_TYPE, "application/json")],
        count.to_string(),
    )
        .into_response()
}

#[derive(Debug, Clone)]
struct Service(Arc<Shared>);

#[async_trait]
impl ConnectionService for Service {
    type ConnectStream = ConnectStream;

    async fn connect(
        &self,
        request: Request<ConnectRequest>,
    ) -> Result<Response<ConnectStream>, Status> {
        Ok(Response::new(self.0.connect(request.get_ref())))
    }

    async fn connection_keep_alive(
        &self,
        request: Request<ConnectionKeepAlive>,
    ) -> Result<Response<()>, Status> {
        self.0
            .model(|model, now| model.keep_alive(now, request.get_ref()));
        Ok(Response::new(()))
    }

    async fn get_descriptor_set(
        &self,
        _: Request<()>,
    ) -> Result<Response<DescriptorSetResponse>, Status> {
        answer(self.0.model(|model, _| model.descriptor_set()))
    }

    async fn check_compatibility(
        &self,
        request: Request<CompatibilityRequest>,
    ) -> Result<Response<CompatibilityResponse>, Status> {
        answer(
            self.0
                .model(|model, _| model.check_compatibility(request.get_ref())),
        )
    }
}

#[async_trait]
impl Server for Service {
    async fn get_version_info(
        &self,
        _: Request<()>,
    ) -> Result<Response<ServerVersionInfo>, Status> {
        answer(self.0.model(|model, _| model.version_info()))
    }
}

fn answer<T>(answer: Result<T, CoreStatus>) -> Result<Response<T>, Status> {
    answer
        .map(Response::new)
        .map_err(|error| status(error.code, &error.message))
}

#[async_trait]
impl Echo for Service {
    async fn unary(&self, request: Request<Payload>) -> Result<Response<Payload>, Status> {
        let metadata = request.metadata().iter().map(|entry| match entry {
            KeyAndValueRef::Ascii(key, value) => {
                format!("{key}: {}", value.to_str().unwrap_or_default())
            }
            KeyAndValueRef::Binary(key, _) => format!("{key}: (binary)"),
        });
        Ok(Response::new(Payload {
            metadata: metadata.collect(),
            port: self.0.port.into(),
            data: request.into_inner().data,
        }))
    }

    type StreamStream = BoxStream<'static, Result<Payload, Status>>;

    async fn stream(
        &self,
        request: Request<StreamRequest>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        let StreamRequest { count, size, hold } = request.into_inner();
        let payload = Payload {
            data: vec![0; size as usize],
            port: self.0.port.into(),
            metadata: vec![],
        };
        let count = match count {
            0 => usize::MAX,
            count => usize::try_from(count).unwrap_or(usize::MAX),
        };
        let payloads = stream::repeat_with(move || Ok(payload.clone())).take(count);
        let end = match hold {
            true => stream::pending().boxed(),
            false => stream::empty().boxed(),
        };
        Ok(Response::new(payloads.chain(end).boxed()))
    }

    type DuplexStream = Streaming<Payload>;

    async fn duplex(
        &self,
        request: Request<Streaming<Payload>>,
    ) -> Result<Response<Streaming<Payload>>, Status> {
        Ok(Response::new(request.into_inner()))
    }
}
