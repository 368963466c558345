//! Where contracts come from: files and servers.

use super::{Problem, Source};
use chronicle_connection_proto::{clients::DescriptorSetResponse, host::ServerVersionInfo, paths};
use chronicle_connection_tokio::{Channel, Client, Config, ConnectionString, Schema};
use std::fs;
use tonic::{Request, Status, client::Grpc, codegen::http::uri::PathAndQuery};
use tonic_prost::ProstCodec;

/// Reads a file, or asks the server of a connection string.
pub(super) async fn read(source: &str) -> Result<Source, Problem> {
    if source.starts_with("chronicle://") || source.starts_with("chronicle+srv://") {
        return ask(source.parse()?).await;
    }
    let bytes = fs::read(source).map_err(|error| format!("{source}: {error}"))?;
    let schema = match as_text(&bytes) {
        Some(text) => Schema::from_source_text(text),
        None => Schema::from_descriptor_set(bytes),
    };
    Ok(Source {
        schema: schema.map_err(|error| format!("{source}: {error}"))?,
        version: None,
    })
}

/// A descriptor set has lengths in it, which are control characters or no UTF-8.
fn as_text(bytes: &[u8]) -> Option<&str> {
    let text = str::from_utf8(bytes).ok()?;
    let is_text = |c: char| !c.is_control() || c.is_whitespace();
    text.chars().all(is_text).then_some(text)
}

/// Any server tells its contract as text, one that refuses the client's included.
async fn ask(string: ConnectionString) -> Result<Source, Problem> {
    let client = Client::builder(string)
        .skip_compatibility_check(true)
        .connect_timeout(Some(Config::DEFAULT_CONNECT_TIMEOUT))
        .connect()
        .await?;
    let text: Result<DescriptorSetResponse, _> = call(&client, paths::GET_DESCRIPTOR_SET).await;
    let version: Result<ServerVersionInfo, _> = call(&client, paths::GET_VERSION_INFO).await;
    client.close().await;
    let text = text.map_err(|status| format!("GetDescriptorSet failed: {status}"))?;
    Ok(Source {
        schema: Schema::from_source_text(&text.schema_definition)?,
        version: version.ok().map(|info| info.version),
    })
}

async fn call<T>(client: &Client, path: &'static str) -> Result<T, Status>
where
    T: prost::Message + Default + 'static,
{
    let mut grpc = Grpc::<Channel>::new(client.channel()).max_decoding_message_size(LIMIT);
    let ready = grpc.ready().await;
    ready.map_err(|error| Status::unavailable(error.to_string()))?;
    let codec = ProstCodec::<(), T>::default();
    let path = PathAndQuery::from_static(path);
    let answer = grpc.unary(Request::new(()), path, codec).await?;
    Ok(answer.into_inner())
}

const LIMIT: usize = 16 * 1024 * 1024;
