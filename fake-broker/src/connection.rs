//! A client's connection to one node, as the cluster sees it.
//!
//! Kafka mutes a connection while it works on a request: the next one is not looked at before the answer was handed to
//! the writer. A throttled connection stays muted for the time that the answer told the client.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;
use krafka_protocol::Str;
use krafka_protocol::frame::Frame;

use crate::context::RequestId;
use crate::listeners::SecurityProtocol;
use crate::security::principal::Principal;
use crate::security::sasl;
use crate::timers::TimerId;

/// A connection, its unread requests, and what it told about itself.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) node: i32,
    pub(crate) listener: SecurityProtocol,
    /// Who the client's certificate says that it is.
    pub(crate) subject: Option<Str>,
    /// Frames that came and are not looked at yet.
    pub(crate) inbox: VecDeque<Bytes>,
    /// The request that the node works on.
    pub(crate) current: Option<RequestId>,
    /// Whether the connection is muted after a throttled answer.
    pub(crate) throttled: bool,
    /// When something came or went the last time.
    pub(crate) active: Instant,
    /// Goes off when that is too long ago.
    pub(crate) idle_timer: Option<TimerId>,
    /// The client's software and its version, from its ApiVersions request.
    pub(crate) software: Option<(Str, Str)>,
    /// Whether another cluster has taken the place of the one that the client connected to.
    pub(crate) is_of_former_cluster: bool,
    /// Answers that wait to be written with the next one.
    pub(crate) kept: Vec<(RequestId, Frame)>,
    /// How far authentication got.
    pub(crate) sasl: sasl::Session,
}

impl Connection {
    pub(crate) fn new(node: i32, listener: SecurityProtocol, subject: Option<Str>, now: Instant) -> Self {
        let sasl = if listener.is_sasl() { sasl::Session::Greeting } else { sasl::Session::Open };
        Self {
            node,
            listener,
            subject,
            inbox: VecDeque::new(),
            current: None,
            throttled: false,
            active: now,
            idle_timer: None,
            software: None,
            is_of_former_cluster: false,
            kept: Vec::new(),
            sasl,
        }
    }

    /// Who the client is, as far as it has shown.
    pub(crate) fn principal(&self) -> Principal {
        match (&self.sasl, &self.subject) {
            (sasl::Session::Done(held), _) => held.login.principal.clone(),
            (sasl::Session::Open, Some(subject)) => Principal::user(subject.clone()),
            _ => Principal::anonymous(),
        }
    }

    /// Whether the client is somebody, or need not be.
    pub(crate) fn is_entered(&self) -> bool {
        matches!(self.sasl, sasl::Session::Open | sasl::Session::Done(_))
    }

    /// Whether the next request may be looked at.
    pub(crate) fn is_ready(&self) -> bool {
        self.current.is_none() && !self.throttled
    }
}
