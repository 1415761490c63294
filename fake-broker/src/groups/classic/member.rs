//! One member of a classic group: what it can speak, what it was assigned, and the answers that it waits for.

use std::time::{Duration, Instant};

use bytes::Bytes;
use krafka_protocol::Str;
use krafka_protocol::api::join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponseMember};

use crate::groups::{Caller, Parked};

/// A member that the coordinator knows by its id.
#[derive(Clone, Debug)]
pub(in crate::groups) struct Member {
    pub(in crate::groups) id: Str,
    /// The name that a static member keeps across restarts (KIP-345).
    pub(in crate::groups) instance_id: Option<Str>,
    pub(in crate::groups) client_id: Str,
    pub(in crate::groups) client_host: Str,
    pub(in crate::groups) session_timeout: Duration,
    pub(in crate::groups) rebalance_timeout: Duration,
    /// In the member's order of preference.
    pub(in crate::groups) protocols: Vec<JoinGroupRequestProtocol>,
    pub(in crate::groups) assignment: Bytes,
    pub(in crate::groups) parked_join: Option<Parked>,
    pub(in crate::groups) parked_sync: Option<Parked>,
    /// Set until the first generation that the member is part of. Nobody can tell whether a new member is still there
    /// while its JoinGroup is parked, so a new one can expire then, and an old one cannot.
    pub(in crate::groups) is_new: bool,
    /// When the session ends, unless something is heard before. `None` after the timer has fired in vain.
    pub(in crate::groups) session_ends: Option<Instant>,
}

impl Member {
    /// A member as its first JoinGroup describes it, not yet waiting for anything.
    pub(in crate::groups) fn joining(id: Str, caller: &Caller, request: &JoinGroupRequest) -> Self {
        let mut member = Self {
            id,
            instance_id: request.group_instance_id.clone(),
            client_id: caller.client_id.clone(),
            client_host: caller.client_host.clone(),
            session_timeout: Duration::ZERO,
            rebalance_timeout: Duration::ZERO,
            protocols: Vec::new(),
            assignment: Bytes::new(),
            parked_join: None,
            parked_sync: None,
            is_new: true,
            session_ends: None,
        };
        member.update(request);
        member
    }

    /// Takes over what a JoinGroup says about the member.
    pub(in crate::groups) fn update(&mut self, request: &JoinGroupRequest) {
        self.session_timeout = session_timeout(request);
        self.rebalance_timeout = match request.rebalance_timeout_ms {
            // Version 0 has no such field; Kafka then lets the session timeout stand for it.
            ..=-1 => self.session_timeout,
            ms => Duration::from_millis(ms.unsigned_abs().into()),
        };
        self.protocols.clone_from(&request.protocols);
    }

    /// Hears from the member: its session runs anew.
    pub(in crate::groups) fn heard(&mut self, now: Instant) {
        self.session_ends = Some(now + self.session_timeout);
    }

    /// Whether the member is alive though it does not heartbeat: it waits for our answer.
    pub(in crate::groups) fn is_excused(&self) -> bool {
        !self.is_new && (self.parked_join.is_some() || self.parked_sync.is_some())
    }

    pub(in crate::groups) fn is_static(&self) -> bool {
        self.instance_id.is_some()
    }

    pub(in crate::groups) fn supports(&self, protocol: &str) -> bool {
        self.protocols.iter().any(|p| &*p.name == protocol)
    }

    /// The first of the candidates in this member's order of preference.
    pub(in crate::groups) fn vote(&self, is_candidate: impl Fn(&str) -> bool) -> Option<&Str> {
        self.protocols.iter().map(|p| &p.name).find(|name| is_candidate(name))
    }

    /// What the member said about itself for a protocol; empty if it does not speak it.
    pub(in crate::groups) fn metadata(&self, protocol: Option<&Str>) -> Bytes {
        self.protocols.iter().find(|p| Some(&p.name) == protocol).map(|p| p.metadata.clone()).unwrap_or_default()
    }

    /// The member as the leader sees it in the answer to its JoinGroup.
    pub(in crate::groups) fn as_listed(&self, protocol: Option<&Str>) -> JoinGroupResponseMember {
        JoinGroupResponseMember {
            member_id: self.id.clone(),
            group_instance_id: self.instance_id.clone(),
            metadata: self.metadata(protocol),
        }
    }
}

/// The session timeout that a JoinGroup asks for.
pub(in crate::groups) fn session_timeout(request: &JoinGroupRequest) -> Duration {
    Duration::from_millis(request.session_timeout_ms.max(0).unsigned_abs().into())
}
