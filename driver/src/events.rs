//! What happens to a connection, for whoever wants to know.

use chronicle_connection::Event;
use std::fmt;
use tokio::sync::broadcast;

/// A subscription to the events of a client.
///
/// A subscriber that falls more than 256 events behind loses the oldest, and is told how many. It
/// never holds the connection up.
#[derive(Debug)]
pub struct Events {
    receiver: broadcast::Receiver<Event>,
}

/// What a subscription brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Something happened.
    Event(Event),
    /// The subscriber was too slow, and this many events are lost to it.
    Lagged(u64),
}

impl Events {
    pub(crate) fn new(receiver: broadcast::Receiver<Event>) -> Self {
        Self { receiver }
    }

    /// The next event; `None` once the client is closed and all were read.
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Notice> {
        match self.receiver.recv().await {
            Ok(event) => Some(Notice::Event(event)),
            Err(broadcast::error::RecvError::Lagged(lost)) => Some(Notice::Lagged(lost)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(event) => event.fmt(f),
            Self::Lagged(1) => f.write_str("1 event was lost to a slow subscriber"),
            Self::Lagged(lost) => write!(f, "{lost} events were lost to a slow subscriber"),
        }
    }
}

/// How many events wait for a slow subscriber.
pub(crate) const QUEUE: usize = 256;
