//! A token request under way, on the transport of the session or of its handshake.

use super::context::{Context, timed_out, wrong_kind};
use crate::{
    Failure, Id, Reply, TokenError,
    token::{TOKEN_LIMIT, TokenMachine},
};
use rand_core::Rng;
use std::time::Instant;

#[derive(Debug, Clone)]
pub(super) struct Fetching {
    pub(super) id: Id,
    pub(super) deadline: Instant,
}

impl Fetching {
    /// Asks for a token, where tokens are the mode and no request is under way.
    pub(super) fn begin<R: Rng>(on: Id, cx: &mut Context<R>) -> Option<Self> {
        let request = cx.tokens.as_mut().and_then(TokenMachine::begin)?;
        Some(Self {
            id: cx.send(on, request, TOKEN_LIMIT),
            deadline: cx.now + cx.config.timing.token,
        })
    }

    /// Ends with a reply, and tells of it.
    pub(super) fn on_reply<R: Rng>(
        self,
        reply: &Reply,
        cx: &mut Context<R>,
    ) -> Result<(), TokenError> {
        let answer = match reply {
            Reply::Http(response) => Ok(response),
            Reply::Failed(failure) => Err(failure.clone()),
            Reply::NameServers(_)
            | Reply::Opened { .. }
            | Reply::GoingAway { .. }
            | Reply::Closed(_)
            | Reply::Message(_)
            | Reply::Finished(_) => {
                cx.cancel(self.id);
                Err(wrong_kind())
            }
        };
        finish(answer, cx)
    }

    /// Ends because its time is up, and tells of it.
    pub(super) fn expire<R: Rng>(self, cx: &mut Context<R>) -> Result<(), TokenError> {
        cx.cancel(self.id);
        let failure = timed_out(cx.config.timing.token);
        finish(Err(failure), cx)
    }

    /// Ends with its session, and tells of it.
    pub(super) fn abandon<R: Rng>(self, cx: &mut Context<R>) {
        if let Some(tokens) = &mut cx.tokens {
            tokens.abandon();
        }
        cx.tell_token(Some(TokenError::NoSession));
    }
}

fn finish<R: Rng>(
    answer: Result<&http::Response<bytes::Bytes>, Failure>,
    cx: &mut Context<R>,
) -> Result<(), TokenError> {
    let Some(tokens) = &mut cx.tokens else {
        return Ok(());
    };
    let result = tokens.finish(cx.now, answer);
    cx.tell_token(result.clone().err());
    result
}

#[cfg(feature = "model-checking")]
impl Fetching {
    pub(super) fn normal_form<H: std::hash::Hasher>(&self, form: &mut crate::NormalForm<H>) {
        let Self { id, deadline } = self;
        form.id(*id);
        form.instant(*deadline);
    }
}
