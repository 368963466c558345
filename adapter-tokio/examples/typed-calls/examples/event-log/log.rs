//! A log of events in memory, behind a reference server: as much of an event store as typed calls
//! need to be tried.

use chronicle_reference_server::{Console, ServerOptions, model::ModelConfig};
use std::{
    collections::BTreeMap,
    error::Error,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{mpsc, watch};
use tokio_stream::{Stream, StreamExt as _, wrappers::ReceiverStream};
use tonic::{Request, Response, Status, Streaming, async_trait, service::Routes};
use typed_calls::contract::{
    bcl::Guid,
    example::events::{
        AppendError, AppendRequest, AppendResponse, Event, ObservationState, Observe, ReadRequest,
        event_log_server::{EventLog, EventLogServer},
    },
};

/// Starts two servers, on this port and the next, or on any that are free. As with a cluster, both
/// know every event, whichever of them took it.
pub(crate) async fn start(port: u16) -> Result<Console, Box<dyn Error>> {
    let contract = include_bytes!("../../served.txt");
    let options = ServerOptions {
        port,
        model: ModelConfig::serving(contract, "18.5.0")?,
        services: Routes::new(EventLogServer::new(Log::default())),
        ..ServerOptions::default()
    };
    Ok(Console::start(options, 2).await?)
}

#[derive(Debug, Clone)]
struct Log {
    state: Arc<Mutex<State>>,
    /// How many events there are.
    length: Arc<watch::Sender<usize>>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            state: Arc::default(),
            length: Arc::new(watch::Sender::new(0)),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    events: Vec<Event>,
    /// For each observer, how many events it has handled.
    handled: BTreeMap<String, u64>,
}

type Events = Pin<Box<dyn Stream<Item = Result<Event, Status>> + Send>>;

#[async_trait]
impl EventLog for Log {
    async fn append(
        &self,
        request: Request<AppendRequest>,
    ) -> Result<Response<AppendResponse>, Status> {
        let AppendRequest {
            event_type,
            content,
        } = request.into_inner();
        let mut response = AppendResponse::default();
        if event_type.is_empty() {
            response.set_error(AppendError::UnknownEventType);
            return Ok(Response::new(response));
        }
        let mut state = self.lock();
        let sequence_number = state.events.len() as u64;
        state.events.push(Event {
            sequence_number,
            id: Some(Guid {
                lo: sequence_number,
                hi: 0,
            }),
            event_type,
            content,
        });
        self.length.send_replace(state.events.len());
        response.sequence_number = sequence_number;
        Ok(Response::new(response))
    }

    type ReadStream = Events;

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Events>, Status> {
        let from = usize::try_from(request.get_ref().from).unwrap_or(usize::MAX);
        let events = self.lock().events.get(from..).unwrap_or_default().to_vec();
        Ok(Response::new(Box::pin(tokio_stream::iter(
            events.into_iter().map(Ok),
        ))))
    }

    type ObserveStream = Events;

    /// The first message tells who observes; each further one, that the event before is handled. Only
    /// then does the next event follow. Whoever comes back goes on behind what it has handled.
    async fn observe(
        &self,
        request: Request<Streaming<Observe>>,
    ) -> Result<Response<Events>, Status> {
        let (sender, events) = mpsc::channel(1);
        tokio::spawn(self.clone().deliver(request.into_inner(), sender));
        Ok(Response::new(Box::pin(ReceiverStream::new(events))))
    }
}

impl Log {
    async fn deliver(
        self,
        mut answers: Streaming<Observe>,
        events: mpsc::Sender<Result<Event, Status>>,
    ) {
        let mut length = self.length.subscribe();
        while let Some(Ok(answer)) = answers.next().await {
            let next = {
                let mut state = self.lock();
                let handled = state.handled.entry(answer.observer.clone()).or_default();
                if answer.state() == ObservationState::Success {
                    *handled = answer.handled.max(*handled);
                }
                *handled
            };
            let next = usize::try_from(next).unwrap_or(usize::MAX);
            tokio::select! {
                is_there = length.wait_for(|length| *length > next) => {
                    if is_there.is_err() {
                        return;
                    }
                }
                () = events.closed() => return,
            }
            let Some(event) = self.lock().events.get(next).cloned() else {
                return;
            };
            if events.send(Ok(event)).await.is_err() {
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
