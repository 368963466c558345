//! Servers with a contract of somebody's choice.

use super::{Age, ModelConfig, UNREADABLE, Verdict};
use chronicle_connection::{
    Contract, ContractError, Incompatibility, Schema, as_source_text, diff, is_newer,
};
use chronicle_connection_proto::clients::CompatibilityRequest;
use std::sync::Arc;

impl ModelConfig {
    /// A server of this version with this contract, a descriptor set or proto source text. What a
    /// session needs is added where the contract lacks it.
    ///
    /// Clients are judged by it as servers of that version judge: those below 17 know no check, and
    /// tell the contract alone.
    ///
    /// # Errors
    /// [`ContractError`] where the bytes are no contract.
    pub fn serving(contract: &[u8], version: &str) -> Result<Self, ContractError> {
        let text = as_source_text(contract);
        let contract = match text {
            Some(text) => Contract::from_source_text(text, version)?,
            None => Contract::from_descriptor_set(contract.to_vec(), version)?,
        };
        let schema = match text {
            // As it is, with all that makes it no valid protobuf.
            Some(text) if declares_session(text)? => text.to_owned(),
            Some(_) | None => {
                let files = contract.to_proto_files()?.into_iter();
                let texts: Vec<String> = files.map(|file| file.content).collect();
                texts.join("\n")
            }
        };
        Ok(Self {
            age: match is_newer(FIRST_WITH_CHECK, version) {
                true => Age::WithoutCheck,
                false => Age::Current,
            },
            verdict: Verdict::Computed(Arc::new(contract.schema().clone())),
            version: version.to_owned(),
            schema,
            protocol_version: version.to_owned(),
            ..Self::default()
        })
    }
}

/// What a server finds that judges a client's contract by its own, in its words.
///
/// The expected side is the client's. From 18.5 on, where the client's contract claims to be the
/// newer one, it is the server's, since what the client gained is not what the server removed.
pub(super) fn judge(
    request: &CompatibilityRequest,
    own: &Schema,
    config: &ModelConfig,
) -> Vec<String> {
    let Ok(client) = Schema::from_descriptor_set(request.descriptor_set.clone()) else {
        return vec![UNREADABLE.to_owned()];
    };
    let knows_newer_clients = !is_newer(FIRST_WITH_NEWER_CLIENTS, &config.version);
    let is_newer_client = is_newer(&request.protocol_version, &config.protocol_version);
    let findings = match knows_newer_clients && is_newer_client {
        true => diff(own, &client),
        false => diff(&client, own),
    };
    findings.iter().map(words).collect()
}

/// The names of kinds are those of servers, in which a path begins with a dot.
fn words(finding: &Incompatibility) -> String {
    let Incompatibility {
        kind, path, before, ..
    } = finding;
    let after = finding.after.as_deref().unwrap_or("gone");
    format!("{kind:?}: .{path} ({before} -> {after})")
}

fn declares_session(text: &str) -> Result<bool, ContractError> {
    let schema = Schema::from_source_text(text)?;
    Ok(schema.is_unary(crate::paths::CONNECTION_KEEP_ALIVE))
}

const FIRST_WITH_CHECK: &str = "17";
const FIRST_WITH_NEWER_CLIENTS: &str = "18.5";
