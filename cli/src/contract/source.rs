//! Where contracts come from: files and servers.

use super::{Problem, Source};
use chronicle_connection_proto::{
    clients::{CompatibilityRequest, CompatibilityResponse, DescriptorSetResponse},
    host::ServerVersionInfo,
    paths,
};
use chronicle_connection_tokio::{
    Channel, Client, Config, ConnectionString, Contract, Schema, as_source_text,
};
use std::fs;
use tonic::{Code, Request, Status, client::Grpc, codegen::http::uri::PathAndQuery};
use tonic_prost::ProstCodec;

/// Reads a file, or asks the server of a connection string.
pub(super) async fn read(source: &str) -> Result<Source, Problem> {
    if source.starts_with("chronicle://") || source.starts_with("chronicle+srv://") {
        return ask(source.parse()?).await;
    }
    let bytes = fs::read(source).map_err(|error| format!("{source}: {error}"))?;
    let schema = match as_source_text(&bytes) {
        Some(text) => Schema::from_source_text(text),
        None => Schema::from_descriptor_set(bytes),
    };
    Ok(Source {
        schema: schema.map_err(|error| format!("{source}: {error}"))?,
        version: None,
    })
}

/// What a server tells of its contract.
pub(super) struct Told {
    /// Proto source text.
    pub(super) text: String,
    pub(super) version: Option<String>,
    pub(super) protocol_version: Option<String>,
}

async fn ask(string: ConnectionString) -> Result<Source, Problem> {
    let told = told(string).await?;
    Ok(Source {
        schema: Schema::from_source_text(&told.text)?,
        version: told.version,
    })
}

/// Any server tells its contract as text, one that refuses the client's included.
pub(super) async fn told(string: ConnectionString) -> Result<Told, Problem> {
    let client = Client::builder(string)
        .skip_compatibility_check(true)
        .connect_timeout(Some(Config::DEFAULT_CONNECT_TIMEOUT))
        .connect()
        .await?;
    let text = call(&client, paths::GET_DESCRIPTOR_SET, ()).await;
    let version = call(&client, paths::GET_VERSION_INFO, ()).await;
    let session = Contract::default();
    // The verdict does not matter: a server tells the version of its contract nowhere else.
    let check = CompatibilityRequest {
        client_type: "Rust".to_owned(),
        client_version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol_version: session.claimed_version().to_owned(),
        descriptor_set: session.descriptor_set().to_vec(),
    };
    let check = call(&client, paths::CHECK_COMPATIBILITY, check).await;
    client.close().await;
    let text: DescriptorSetResponse =
        text.map_err(|status| format!("GetDescriptorSet failed: {status}"))?;
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
                Err(format!("the server did not tell its version: {status}").into())
            }
            _ => Ok(None),
        },
    }
}

async fn call<T, U>(client: &Client, path: &'static str, request: T) -> Result<U, Status>
where
    T: prost::Message + 'static,
    U: prost::Message + Default + 'static,
{
    let mut grpc = Grpc::<Channel>::new(client.channel()).max_decoding_message_size(LIMIT);
    let ready = grpc.ready().await;
    ready.map_err(|error| Status::unavailable(error.to_string()))?;
    let codec = ProstCodec::<T, U>::default();
    let path = PathAndQuery::from_static(path);
    let answer = grpc.unary(Request::new(request), path, codec).await?;
    Ok(answer.into_inner())
}

const LIMIT: usize = 16 * 1024 * 1024;
