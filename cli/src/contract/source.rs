//! Where contracts come from: files and servers.

use super::Source;
use crate::problem::{Problem, bad_input};
use chronicle_connection_proto::{
    clients::{CompatibilityRequest, CompatibilityResponse, DescriptorSetResponse},
    host::ServerVersionInfo,
    paths,
};
use chronicle_connection_tokio::{
    Channel, Client, Config, ConnectionString, Contract, Schema, as_source_text,
};
use std::{fmt::Display, fs, time::Duration};
use tonic::{Code, Request, Status, client::Grpc, codegen::http::uri::PathAndQuery};
use tonic_prost::ProstCodec;

/// Reads a file, or asks the server of a connection string.
pub(super) async fn read(source: &str) -> Result<Source, Problem> {
    if is_connection_string(source) {
        return ask(source).await;
    }
    let in_file = |error: &dyn Display| bad_input(format!("{source}: {error}"));
    let bytes = fs::read(source).map_err(|error| in_file(&error))?;
    let schema = match as_source_text(&bytes) {
        Some(text) => Schema::from_source_text(text),
        None => Schema::from_descriptor_set(bytes),
    };
    Ok(Source {
        schema: schema.map_err(|error| in_file(&error))?,
        version: None,
    })
}

fn is_connection_string(source: &str) -> bool {
    let scheme = source.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        ["chronicle", "chronicle+srv"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(scheme))
    })
}

/// What a server tells of its contract.
pub(super) struct Told {
    /// Proto source text.
    pub(super) text: String,
    pub(super) version: Option<String>,
    pub(super) protocol_version: Option<String>,
}

async fn ask(string: &str) -> Result<Source, Problem> {
    let told = told(string).await?;
    Ok(Source {
        schema: Schema::from_source_text(&told.text).map_err(bad_input)?,
        version: told.protocol_version.or(told.version),
    })
}

/// Any server tells its contract as text, one that refuses the client's included.
pub(super) async fn told(string: &str) -> Result<Told, Problem> {
    let string = ConnectionString::parse(string).map_err(bad_input)?;
    if string.skip_compatibility_check() == Some(false) {
        return Err(bad_input(
            "a server is asked for its contract without a check; take skipCompatibilityCheck=false \
             out",
        ));
    }
    let client = Client::builder(string)
        .skip_compatibility_check(true)
        .connect_timeout(Some(Config::DEFAULT_CONNECT_TIMEOUT))
        .connect()
        .await
        .map_err(bad_input)?;
    let session = Contract::default();
    // The verdict does not matter: a server tells the version of its contract nowhere else.
    let check = CompatibilityRequest {
        client_type: "Rust".to_owned(),
        client_version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol_version: session.claimed_version().to_owned(),
        descriptor_set: session.descriptor_set().to_vec(),
    };
    let (text, version, check) = tokio::join!(
        call(&client, paths::GET_DESCRIPTOR_SET, ()),
        call(&client, paths::GET_VERSION_INFO, ()),
        call(&client, paths::CHECK_COMPATIBILITY, check),
    );
    client.close().await;
    let text: DescriptorSetResponse = text.map_err(|status| untold("contract", &status))?;
    let version: Option<ServerVersionInfo> = if_known(version)?;
    let version = version.map(|info| info.version);
    let check: Option<CompatibilityResponse> = if_known(check)?;
    let checked = check.as_ref().map(|check| check.server_version.clone());
    let is_told = |version: &String| !version.is_empty();
    Ok(Told {
        text: text.schema_definition,
        version: version.filter(is_told).or(checked).filter(is_told),
        protocol_version: check
            .map(|check| check.server_protocol_version)
            .filter(is_told),
    })
}

/// Servers need not tell their versions; but one that is gone has told nothing.
fn if_known<T>(answer: Result<T, Status>) -> Result<Option<T>, Problem> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(status) => match status.code() {
            Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => {
                Err(untold("version", &status))
            }
            _ => Ok(None),
        },
    }
}

fn untold(what: &str, status: &Status) -> Problem {
    bad_input(match status.code() {
        Code::DeadlineExceeded => format!(
            "the server did not tell its {what} within {} s; it may be overloaded, so try again",
            PATIENCE.as_secs()
        ),
        _ => format!("the server did not tell its {what}: {status}"),
    })
}

async fn call<T, U>(client: &Client, path: &'static str, message: T) -> Result<U, Status>
where
    T: prost::Message + 'static,
    U: prost::Message + Default + 'static,
{
    let mut grpc = Grpc::<Channel>::new(client.channel()).max_decoding_message_size(LIMIT);
    let ready = grpc.ready().await;
    ready.map_err(|error| Status::unavailable(error.to_string()))?;
    let codec = ProstCodec::<T, U>::default();
    let mut request = Request::new(message);
    request.set_timeout(PATIENCE);
    let answer = grpc
        .unary(request, PathAndQuery::from_static(path), codec)
        .await?;
    Ok(answer.into_inner())
}

const LIMIT: usize = 16 * 1024 * 1024;
/// As long as a client gives the check of its contract.
const PATIENCE: Duration = Duration::from_secs(10);
