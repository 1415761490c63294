//! [`Renewal`]: a connection authenticates once more, before the broker ends its session (KIP-368).
//!
//! ```text
//!   idle ──begin──▶ beginning ──credentials──▶ talking ◀──▶ thinking
//!    ▲                  │                         │             a proof that takes long
//!    └──────────────────┴── renewed · failed ─────┘
//! ```

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use krafka_protocol::Str;
use krafka_protocol::frame::Frame;
use krafka_protocol::machine::Machine;
use tokio::task::{JoinHandle, spawn_blocking};

use super::Shared;
use super::handshake::{Action, Handshake};
use crate::auth::{Beginning, Credentials, Spelling};
use crate::drive;
use crate::error::{KrafkaError, ProtocolErrorKind};
use crate::rng::Rng;

/// A session is renewed after this part of its life (±5 %), as in Java.
const SESSION_PART: f64 = 0.9;

/// The spread of it, so that the connections of a cluster do not all authenticate in the same moment.
const SPREAD: f64 = 0.05;

/// Who a connection's client is, and how to say so again.
pub(super) struct Renewal {
    login: Option<(Arc<Credentials>, Spelling)>,
    step: Step,
    rng: Rng,
}

enum Step {
    Idle,
    Beginning(Beginning),
    Talking(Box<Handshake>),
    Thinking(JoinHandle<Box<Handshake>>),
    /// The broker spoke when it was not its turn.
    Interrupted,
}

/// What comes of it next.
pub(super) enum Event {
    /// Write this.
    Say(Frame),
    /// The session lives on for so long, or for ever.
    Renewed(Option<Duration>),
    Failed(KrafkaError),
}

impl Renewal {
    /// For a connection on which these credentials were taken, in this spelling; none on one without SASL.
    pub(super) fn new(login: Option<(Arc<Credentials>, Spelling)>, rng: Rng) -> Self {
        Self { login, step: Step::Idle, rng }
    }

    /// How long after its beginning a session is to be renewed.
    pub(super) fn after(&mut self, lifetime: Duration) -> Duration {
        lifetime.mul_f64(SESSION_PART * self.rng.jitter(SPREAD))
    }

    /// Asks for the credentials, which may have changed.
    pub(super) fn begin(&mut self, host: &Str) {
        if let Some((credentials, spelling)) = &self.login {
            self.step = Step::Beginning(credentials.beginning(*spelling, host.clone()));
        }
    }

    /// Takes an answer of the broker.
    pub(super) fn hear(&mut self, answer: Bytes) {
        self.step = match std::mem::replace(&mut self.step, Step::Idle) {
            Step::Talking(mut handshake) if !handshake.is_costly(&answer) => {
                handshake.handle(answer, drive::now());
                Step::Talking(handshake)
            }
            Step::Talking(mut handshake) => Step::Thinking(spawn_blocking(move || {
                handshake.handle(answer, drive::now());
                handshake
            })),
            Step::Idle | Step::Beginning(_) | Step::Thinking(_) | Step::Interrupted => Step::Interrupted,
        };
    }

    /// What comes next; pending while nothing is renewed, or the broker has to speak.
    pub(super) fn poll(&mut self, shared: &Shared, cx: &mut Context<'_>) -> Poll<Event> {
        loop {
            match &mut self.step {
                Step::Idle => return Poll::Pending,
                Step::Beginning(beginning) => match beginning.as_mut().poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(exchange)) => {
                        let (node, client_id) = (shared.node.clone(), shared.client_id.clone());
                        let handshake = Handshake::again(node, client_id, exchange, shared.versions.clone());
                        self.step = Step::Talking(Box::new(handshake));
                    }
                    Poll::Ready(Err(error)) => return self.end(Event::Failed(error)),
                },
                Step::Thinking(thinking) => match Pin::new(thinking).poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(handshake)) => self.step = Step::Talking(handshake),
                    Poll::Ready(Err(_)) => {
                        return self.end(Event::Failed(KrafkaError::closed("the runtime is shutting down")));
                    }
                },
                Step::Interrupted => {
                    let message = format!("{}: an answer came that nobody asked for", shared.node);
                    let error = KrafkaError::protocol(ProtocolErrorKind::UnexpectedResponse, message);
                    return self.end(Event::Failed(error));
                }
                Step::Talking(handshake) => {
                    return match handshake.poll(drive::now()) {
                        None => Poll::Pending,
                        // Only ApiVersions asks for silence, which is not asked again.
                        Some(Action::Hush(_)) => continue,
                        Some(Action::Send(frame)) => Poll::Ready(Event::Say(frame)),
                        Some(Action::Finish { session, .. }) => self.end(Event::Renewed(session)),
                        Some(Action::Fail(error) | Action::Refuse(error) | Action::Misrouted(error)) => {
                            self.end(Event::Failed(error))
                        }
                    };
                }
            }
        }
    }

    fn end(&mut self, event: Event) -> Poll<Event> {
        self.step = Step::Idle;
        Poll::Ready(event)
    }
}
