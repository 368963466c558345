//! How a program that runs on is asked to stop.

use std::{future::Future, io};
#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};

/// Completes when the program is asked to stop, from the moment of this call on.
pub(crate) fn interrupted() -> io::Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        Ok(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        })
    }
    #[cfg(not(unix))]
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}
