//! What a handshake does about credentials.

use super::{Check, Handshaking, Step};
use crate::{
    CandidateError, CredentialsError, Request, Status, TokenError,
    config::Credentials,
    connection::{Phase, context::Context, fetching::Fetching},
};
use rand_core::Rng;
use std::mem;

impl Handshaking {
    /// What was held up for want of a token goes on.
    pub(super) fn token_came<R: Rng>(
        mut self,
        result: Result<(), TokenError>,
        cx: &mut Context<R>,
    ) -> Phase {
        match result {
            Ok(()) => {}
            Err(error @ TokenError::Refused { .. }) => {
                let error = CredentialsError::Token(error);
                return self.fail(CandidateError::Credentials(error), cx);
            }
            Err(error) => return self.fail(CandidateError::Token(error), cx),
        }
        if let Step::Proving { check, .. } = &mut self.step {
            *check = match mem::replace(check, Check::Done) {
                Check::AwaitingToken(mut checking) => {
                    checking.authenticate(cx);
                    Check::Running(checking)
                }
                other @ (Check::Done | Check::Running(_)) => other,
            };
        }
        self.register_when_proven(cx)
    }

    /// The server refused the check for want of credentials, or for bad ones.
    pub(super) fn check_unauthenticated<R: Rng>(
        mut self,
        status: Status,
        cx: &mut Context<R>,
    ) -> Phase {
        let generation = cx.token_generation();
        let Step::Proving {
            check: Check::Running(checking),
            ..
        } = &mut self.step
        else {
            return Phase::Handshaking(self);
        };
        let had_credentials = checking.is_authenticated();
        let can_renew = cx.tokens.is_some() && !self.renewed;
        // A version that is refused again is unknown, and says no more of the token.
        if had_credentials && (can_renew || checking.request() != Request::GetVersionInfo) {
            cx.reject_token(generation);
        }
        match &cx.config.credentials {
            Credentials::ApiKey(_) | Credentials::Client { .. }
                if !had_credentials && !cx.lacks_token() =>
            {
                checking.authenticate(cx);
                Phase::Handshaking(self)
            }
            Credentials::Client { .. } if !had_credentials || can_renew => {
                self.renewed |= had_credentials;
                self.await_token(cx)
            }
            Credentials::None | Credentials::ApiKey(_) | Credentials::Client { .. } => {
                let request = checking.request();
                match checking.go_without(cx) {
                    Some(verdict) => self.judged(verdict, cx),
                    None => self.refused(request, status, had_credentials, cx),
                }
            }
        }
    }

    /// Holds the check up until there is a token.
    pub(super) fn await_token<R: Rng>(mut self, cx: &mut Context<R>) -> Phase {
        if let Step::Proving {
            on, check, token, ..
        } = &mut self.step
        {
            if token.is_none() {
                *token = Fetching::begin(*on, cx);
            }
            *check = match mem::replace(check, Check::Done) {
                Check::Running(checking) => Check::AwaitingToken(checking),
                other @ (Check::Done | Check::AwaitingToken(_)) => other,
            };
        }
        Phase::Handshaking(self)
    }

    pub(super) fn refused<R: Rng>(
        self,
        request: Request,
        status: Status,
        had_credentials: bool,
        cx: &mut Context<R>,
    ) -> Phase {
        let error = CredentialsError::Refused {
            request,
            status,
            had_credentials,
        };
        self.fail(CandidateError::Credentials(error), cx)
    }
}
