//! The task that holds a handle's bearer token: runs [`Tokens`], and asks the provider.

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::oauth::{BearerToken, TokenError, TokenProvider};
use super::tokens::{Action, Input, Tokens};
use crate::drive;
use crate::environment::{Environment, WallClock};
use crate::error::KrafkaError;

/// How long a provider may take. Whoever waits has a deadline of its own, which is shorter as a rule.
const PATIENCE: Duration = Duration::from_secs(60);

type Waiter = oneshot::Sender<Result<BearerToken, Arc<TokenError>>>;

/// The token that all connections of a handle use.
pub(super) struct SharedToken {
    asking: Asking,
    /// The way to the task, which starts with the first who wants a token and ends with the handle.
    inputs: OnceLock<mpsc::UnboundedSender<Input<Waiter, Arc<TokenError>>>>,
}

#[derive(Clone)]
struct Asking {
    provider: Arc<dyn TokenProvider>,
    wall_clock: Arc<dyn WallClock>,
    seed: u64,
}

impl SharedToken {
    pub(super) fn new(provider: Arc<dyn TokenProvider>, environment: &Environment) -> Self {
        let asking = Asking { provider, wall_clock: environment.clock(), seed: environment.seed() };
        Self { asking, inputs: OnceLock::new() }
    }

    /// The token that there is, or a new one.
    pub(super) async fn token(&self) -> Result<BearerToken, KrafkaError> {
        let (waiter, token) = oneshot::channel();
        let inputs = self.inputs.get_or_init(|| {
            // Each connection attempt puts in one small input at most.
            let (inputs, receiver) = mpsc::unbounded_channel();
            tokio::spawn(run(self.asking.clone(), receiver));
            inputs
        });
        // The task ends only with its runtime; then the waiter that is dropped with the input says so.
        let _ = inputs.send(Input::Wanted { waiter });
        match token.await {
            Ok(given) => given.map_err(|why| missing(&why)),
            Err(_) => Err(KrafkaError::closed("the Kafka handle was closed")),
        }
    }
}

async fn run(asking: Asking, inputs: mpsc::UnboundedReceiver<Input<Waiter, Arc<TokenError>>>) {
    let mut tokens = Tokens::new(asking.seed);
    drive::run(&mut tokens, inputs, |action, work| {
        match action {
            Action::Fetch => work.start(fetch(asking.clone())),
            // A waiter that is gone does not want to know.
            Action::Give { waiter, token } => drop(waiter.send(Ok(token))),
            Action::Refuse { waiter, why } => drop(waiter.send(Err(why))),
        }
        ControlFlow::Continue(())
    })
    .await;
}

async fn fetch(asking: Asking) -> Input<Waiter, Arc<TokenError>> {
    let late = |_| Err(format!("the token provider took longer than {PATIENCE:?}").into());
    match timeout(PATIENCE, asking.provider.token()).await.unwrap_or_else(late) {
        Ok(token) => {
            let now = asking.wall_clock.now();
            let life = token.end().map(|end| end.duration_since(now).unwrap_or_default());
            tracing::debug!(?life, "got a bearer token");
            Input::Fetched { token, life }
        }
        Err(why) => {
            tracing::warn!(%why, "got no bearer token");
            Input::Failed { why: Arc::new(why) }
        }
    }
}

/// A provider that failed may succeed later, unless it says itself that it will not.
#[cold]
fn missing(why: &Arc<TokenError>) -> KrafkaError {
    match why.downcast_ref::<KrafkaError>() {
        Some(error) => error.clone(),
        None => KrafkaError::network("asking for a bearer token", std::io::Error::other(why.to_string())),
    }
}
