//! Requests that nobody sent: what a test, a rule or the control port asks of a node, as an administrator who may do
//! everything. With it, whatever any API can change is a control and a fault as well.

use std::time::Instant;

use krafka_protocol::{AnyRequest, AnyResponse, ApiKey, ErrorCode};
use serde_json::Value as Json;

use crate::context::{Context, Outcome};
use crate::coordinators::{self, CoordinatorKind};
use crate::faults::{Entities, Node, request_of};
use crate::handlers;
use crate::state::State;

/// What only a connection can ask: it is about the connection, or waits for what others do.
const NEEDS_A_CONNECTION: &[ApiKey] = &[
    ApiKey::ApiVersions,
    ApiKey::SaslHandshake,
    ApiKey::SaslAuthenticate,
    ApiKey::Fetch,
    ApiKey::ShareFetch,
    ApiKey::ShareAcknowledge,
    ApiKey::JoinGroup,
    ApiKey::SyncGroup,
];

/// Why a request was not asked, in words.
#[derive(Debug)]
pub(crate) enum Unasked {
    /// It is none, or none that the node speaks.
    Wrong(String),
    /// The node is not there.
    NotThere(String),
    /// Nobody answers it now.
    Impossible(String),
}

impl From<Unasked> for String {
    fn from(unasked: Unasked) -> Self {
        match unasked {
            Unasked::Wrong(words) | Unasked::NotThere(words) | Unasked::Impossible(words) => words,
        }
    }
}

impl State {
    /// Lets a node handle a request at once, if it can. The authorizer is not asked.
    pub(crate) fn ask(&mut self, node: i32, request: &AnyRequest, version: i16, now: Instant) -> Option<AnyResponse> {
        let cx = Context::own(self, node, request.key(), version, now);
        let is_enabled = std::mem::take(&mut self.acls.enabled);
        let outcome = handlers::handle(self, &cx, request);
        self.acls.enabled = is_enabled;
        match outcome {
            Outcome::Reply(answer)
            | Outcome::ReplyAndClose(answer)
            | Outcome::ReplyLate(answer, _)
            | Outcome::ReplyLateAndClose(answer, _) => Some(answer),
            Outcome::Park(_) | Outcome::NoReply | Outcome::Close => None,
        }
    }

    /// Carries out a request that is written as JSON. Without a node, it is the coordinator of the group or
    /// transactional id that the request is about, or the first node that is up; without a version, the newest that the
    /// node speaks.
    ///
    /// # Errors
    ///
    /// Why it cannot be asked, in words.
    pub(crate) fn request(
        &mut self,
        api: &str,
        node: Option<i32>,
        version: Option<i16>,
        fields: &Json,
        now: Instant,
    ) -> Result<AnyResponse, Unasked> {
        let key = api_of(api).map_err(Unasked::Wrong)?;
        let first = self.nodes.live().find(|(_, node)| !node.paused).or_else(|| self.nodes.live().next());
        let first = first.map(|(id, _)| id).ok_or_else(|| Unasked::Impossible("no node is up".to_owned()))?;
        let asked = node.unwrap_or(first);
        self.answers(asked)?;
        let spoken = handlers::versions(self, asked, key)
            .ok_or_else(|| Unasked::Wrong(format!("node {asked} does not speak {api}")))?;
        let version = version.unwrap_or(spoken.max);
        if !spoken.contains(version) {
            return Err(Unasked::Wrong(format!("node {asked} speaks {api} in versions {spoken}")));
        }
        let request = request_of(key, version, fields).map_err(Unasked::Wrong)?;
        let node = node.or_else(|| self.coordinator_for(&request, asked, version, now)).unwrap_or(asked);
        self.answers(node)?;
        self.ask(node, &request, version, now)
            .ok_or_else(|| Unasked::Impossible(format!("{api} was not answered at once")))
    }

    /// Sees that a node is there and would answer. One that the others go on without does.
    fn answers(&self, node: i32) -> Result<(), Unasked> {
        self.nodes.find(node).ok_or_else(|| Unasked::NotThere(format!("there is no node {node}")))?;
        if !self.nodes.is_running(node) {
            return Err(Unasked::Impossible(format!("node {node} is not up")));
        }
        if self.nodes.is_paused(node) {
            return Err(Unasked::Impossible(format!("node {node} is paused")));
        }
        Ok(())
    }

    /// The coordinator of what a request is about, if that is one group or one transactional id.
    fn coordinator_for(&mut self, request: &AnyRequest, node: i32, version: i16, now: Instant) -> Option<i32> {
        let cx = Context::own(self, node, request.key(), version, now);
        let about = Entities::of(&cx, request, self).whole();
        let (kind, key) = match (about.group, about.transactional_id) {
            (Some(group), _) => (CoordinatorKind::Group, group),
            (None, Some(id)) => (CoordinatorKind::Transaction, id),
            (None, None) => return None,
        };
        coordinators::ensure_topic(self, kind);
        coordinators::find(self, kind, &key)
    }
}

/// The API of this name, if it can be asked without a connection.
///
/// # Errors
///
/// Why not, in words.
pub(crate) fn api_of(name: &str) -> Result<ApiKey, String> {
    let known = ApiKey::ALL.iter().find(|key| key.name() == name);
    let key = *known.ok_or_else(|| format!("there is no API called `{name}`"))?;
    if NEEDS_A_CONNECTION.contains(&key) { Err(format!("{name} needs a connection")) } else { Ok(key) }
}

/// The first error in an answer.
pub(crate) fn error_in(answer: &AnyResponse) -> Option<ErrorCode> {
    let mut found = None;
    Node::of(answer.structure()).any(&mut |name, value| {
        let is_error = name.ends_with("error_code") && value != 0;
        found = i16::try_from(value).ok().filter(|_| is_error).map(ErrorCode);
        is_error
    });
    found
}
