//! The normal form of a handshake.

use super::{Check, Handshaking, Step};
use crate::{NormalForm, connection::context::Context};
use rand_core::Rng;
use std::hash::Hasher;

impl Handshaking {
    pub(in crate::connection) fn normal_form<R: Rng, H: Hasher>(
        &self,
        cx: &Context<R>,
        form: &mut NormalForm<H>,
    ) {
        let Self {
            attempt,
            chosen,
            renewed,
            step,
        } = self;
        attempt.normal_form(form);
        form.value((chosen, renewed));
        match step {
            Step::Opening => form.value(0),
            Step::Proving {
                on,
                peer,
                reserve,
                check,
                token,
            } => {
                form.value((1, peer));
                form.id(*on);
                form.optional(*reserve, |form, (id, deadline)| {
                    form.id(id);
                    form.instant(deadline);
                });
                match check {
                    Check::Done => form.value(0),
                    Check::Running(checking) => {
                        form.value(1);
                        checking.normal_form(form);
                    }
                    Check::AwaitingToken(checking) => {
                        form.value(2);
                        checking.normal_form(form);
                    }
                }
                form.optional(token.as_ref(), |form, token| token.normal_form(form));
            }
            Step::Registering {
                on,
                peer,
                stream,
                connection_id,
                sent,
                generation,
            } => {
                form.value((2, peer));
                form.id(*on);
                form.id(*stream);
                form.name(connection_id.to_string());
                form.instant(*sent);
                cx.write_generation(*generation, form);
            }
        }
    }
}
