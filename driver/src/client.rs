//! The handle that an application holds.

use crate::{
    Builder, Channel, ConnectError, Events, IntoConnectionString, Runtime, driver::View,
    pool::Live, retry::Refresh,
};
use chronicle_connection::{CallMetadata, Command, ConnectionString, Event, Session, State};
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::{broadcast, mpsc, watch};

/// A connection to a cluster of Chronicle servers that stays up.
///
/// Clones are handles of the same connection. It closes when the last handle is dropped,
/// [`Channel`]s included. Dropping a future of any method, at any point, leaves nothing behind.
pub struct Client<R: Runtime> {
    pub(crate) runtime: R,
    pub(crate) commands: mpsc::UnboundedSender<Command>,
    pub(crate) view: watch::Receiver<View>,
    pub(crate) live: watch::Receiver<Option<Live<R>>>,
    pub(crate) refresh: Option<Refresh>,
    pub(crate) events: broadcast::WeakSender<Event>,
    pub(crate) first_events: Arc<Mutex<Option<Events>>>,
}

impl<R: Runtime> Client<R> {
    /// Connects: completes with the first session, or with the error that ends the attempts.
    ///
    /// # Errors
    /// [`ConnectError`]: what is wrong with the connection string, with the configuration or with
    /// every server that was tried.
    pub async fn connect(
        connection_string: impl IntoConnectionString,
    ) -> Result<Self, ConnectError> {
        let connection_string = connection_string.into_connection_string()?;
        Self::builder(connection_string).connect().await
    }

    /// Everything that can be set about a connection.
    pub fn builder(connection_string: ConnectionString) -> Builder<R> {
        Builder::new(connection_string)
    }

    /// The session that is up, if there is one.
    pub fn session(&self) -> Option<Session> {
        self.view.borrow().session().cloned()
    }

    /// Where the connection stands.
    pub fn state(&self) -> State {
        self.view.borrow().state.clone()
    }

    /// What calls to the server of the session that is up must carry, for those that do not go
    /// through a [`channel`](Self::channel); `None` without a session.
    pub fn call_metadata(&self) -> Option<CallMetadata> {
        let live = self.live.borrow();
        live.as_ref().map(|live| live.metadata.clone())
    }

    /// Subscribes to what happens from now on. The first subscriber is also told what happened
    /// since the start.
    pub fn events(&self) -> Events {
        let mut first = self
            .first_events
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        first.take().unwrap_or_else(|| {
            Events::new(match self.events.upgrade() {
                Some(events) => events.subscribe(),
                None => broadcast::channel(1).1,
            })
        })
    }

    /// Waits for a session: the one that is up, or the next.
    ///
    /// # Errors
    /// [`ConnectError::Failed`] or [`ConnectError::Closed`] where there will be none.
    pub async fn connected(&self) -> Result<Session, ConnectError> {
        let mut view = self.view.clone();
        let decided = |view: &View| view.session().is_some() || view.state == State::Stopped;
        let view = view
            .wait_for(decided)
            .await
            .map_err(|_| ConnectError::Closed)?;
        view.session().cloned().ok_or_else(|| end_of(&view))
    }

    /// Waits for the first session, though it may be over again.
    pub(crate) async fn first_connected(&self) -> Result<(), ConnectError> {
        let mut view = self.view.clone();
        let decided = |view: &View| view.was_connected || view.state == State::Stopped;
        let view = view
            .wait_for(decided)
            .await
            .map_err(|_| ConnectError::Closed)?;
        if view.was_connected {
            return Ok(());
        }
        Err(end_of(&view))
    }

    /// Closes the connection for good, for all handles. Calls under way end `UNAVAILABLE`. Completes
    /// when every open socket is closed; one that is just being opened for a call goes with the next
    /// turn of the executor.
    pub async fn close(&self) {
        // Where nobody takes the command, all is closed already.
        let _ = self.commands.send(Command::Close);
        let mut view = self.view.clone();
        while view.changed().await.is_ok() {}
    }

    /// Where application calls go: always to the server of the live session.
    pub fn channel(&self) -> Channel<R> {
        Channel::new(
            self.runtime.clone(),
            self.live.clone(),
            self.commands.clone(),
        )
        .refreshing(self.refresh.clone())
    }
}

fn end_of(view: &View) -> ConnectError {
    view.failed
        .clone()
        .map_or(ConnectError::Closed, ConnectError::Failed)
}

impl<R: Runtime> Clone for Client<R> {
    fn clone(&self) -> Self {
        Self {
            runtime: self.runtime.clone(),
            commands: self.commands.clone(),
            view: self.view.clone(),
            live: self.live.clone(),
            refresh: self.refresh.clone(),
            events: self.events.clone(),
            first_events: Arc::clone(&self.first_events),
        }
    }
}

impl<R: Runtime> fmt::Debug for Client<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
