//! What an application has of a Chronicle server when no package of its contract exists: the files
//! in `contract/`, which `chronicle contract fetch` wrote and nobody edits, and stubs made of them.

use chronicle_connection_tokio::{Channel, Client, Contract, ContractError};
use contract::example::events::{
    Event, ObservationState, Observe, event_log_client::EventLogClient,
};
use std::{error::Error, time::Duration};
use tokio::{sync::mpsc, time::sleep};
use tokio_stream::wrappers::ReceiverStream;

/// The messages and stubs of the contract, by package.
#[allow(missing_docs, unreachable_pub, reason = "generated")]
pub mod contract {
    tonic::include_proto!("contract");
}

/// The part of the contract that this application uses, for the server to compare.
///
/// # Errors
/// [`ContractError`] where the fetched files are damaged.
pub fn used() -> Result<Contract, ContractError> {
    let set = include_bytes!("../contract/chronicle.desc");
    let version = include_str!("../contract/chronicle.version");
    Contract::from_descriptor_set(&set[..], version.trim_end())?.only(&["Example.Events.EventLog"])
}

/// Connects with that contract.
///
/// # Errors
/// Why there is no connection.
pub async fn connect(connection_string: &str) -> Result<Client, Box<dyn Error + Send + Sync>> {
    let builder = Client::builder(connection_string.parse()?).contract(used()?);
    Ok(builder.connect().await?)
}

/// The stub of a service, over whatever server the client is connected to.
pub fn event_log(client: &Client) -> EventLogClient<Channel> {
    EventLogClient::new(client.channel())
}

/// Hands every event to `handle`, once and in order, until that returns false. The stream of a server
/// that fails is opened anew at the next one, which goes on behind what was handled.
///
/// # Errors
/// Why the client gave up, or why a server refused.
pub async fn observe(
    client: &Client,
    observer: &str,
    mut handle: impl FnMut(&Event) -> bool,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut handled = 0;
    loop {
        client.connected().await?;
        match observe_one_server(client, observer, &mut handled, &mut handle).await {
            Ok(End::Enough) => return Ok(()),
            // The client may not know yet that its session is over.
            Ok(End::OfServer) => sleep(PAUSE).await,
            Err(status) if status.code() == tonic::Code::Unavailable => sleep(PAUSE).await,
            Err(status) => return Err(status.into()),
        }
    }
}

enum End {
    Enough,
    OfServer,
}

async fn observe_one_server(
    client: &Client,
    observer: &str,
    handled: &mut u64,
    handle: &mut impl FnMut(&Event) -> bool,
) -> Result<End, tonic::Status> {
    let (answers, requests) = mpsc::channel(1);
    let answer = |state: ObservationState, handled: u64| Observe {
        observer: observer.to_owned(),
        state: state.into(),
        handled,
    };
    // There is room for it.
    let _ = answers.try_send(answer(ObservationState::None, *handled));
    let events = event_log(client)
        .observe(ReceiverStream::new(requests))
        .await?;
    let mut events = events.into_inner();
    while let Some(event) = events.message().await? {
        // What was handled, and whose answer got lost with its server, comes again.
        if event.sequence_number >= *handled {
            *handled = event.sequence_number + 1;
            if !handle(&event) {
                return Ok(End::Enough);
            }
        }
        let done = answer(ObservationState::Success, *handled);
        if answers.send(done).await.is_err() {
            return Ok(End::OfServer);
        }
    }
    Ok(End::OfServer)
}

const PAUSE: Duration = Duration::from_millis(50);
