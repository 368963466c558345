//! A lookup without a connect.

use crate::{Runtime, dns, runtime::sleep_until};
use chronicle_connection::{Command, Connection, Endpoint, Event, Id, Input, Output, Reply};
use futures_util::{
    StreamExt,
    future::{Either, select},
    stream::BoxStream,
};
use rand_chacha::ChaCha12Rng;
use std::time::Instant;

/// Runs a machine until it knows its servers, or why it does not, and tells every event up to that.
/// It is the machine of a client, asked for its first attempt and then left alone.
pub(crate) async fn resolve<R: Runtime>(
    runtime: R,
    mut machine: Connection<ChaCha12Rng>,
    mut on_event: impl FnMut(&Event),
) -> Vec<Endpoint> {
    let mut request: Option<(Id, BoxStream<'static, Reply>)> = None;
    let mut input = Input::from(Command::Connect);
    loop {
        machine.handle(Instant::now(), input);
        while let Some(output) = machine.poll_output() {
            match output {
                Output::Event(event) => {
                    on_event(&event);
                    match event {
                        Event::Connecting { candidates, .. } => return candidates,
                        Event::BackingOff { .. } => return Vec::new(),
                        _ => {}
                    }
                }
                Output::Cancel(_) => request = None,
                output => request = dns::perform(&runtime, output),
            }
        }
        let (Some(deadline), Some((id, replies))) = (machine.poll_timeout(), &mut request) else {
            // Out of reach: until then, a machine waits for a reply to its lookup.
            return Vec::new();
        };
        let timer = sleep_until(&runtime, deadline);
        input = match select(replies.next(), timer).await {
            Either::Left((Some(reply), _)) => Input::Reply { id: *id, reply },
            Either::Left((None, timer)) => {
                timer.await;
                Command::Tick.into()
            }
            Either::Right(((), _)) => Command::Tick.into(),
        };
    }
}
