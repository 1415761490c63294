//! The task that holds a handle's bearer token, or its AWS keys: runs [`Tokens`], and asks the provider.

use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::aws::{AwsCredentials, AwsCredentialsProvider};
use super::oauth::{BearerToken, TokenError, TokenProvider};
use super::tokens::{Action, Given, Input, Tokens};
use crate::drive;
use crate::environment::{Environment, WallClock};
use crate::error::KrafkaError;
use crate::limits::finite;
use crate::unwind::{Panicked, caught};

type Waiter<T> = oneshot::Sender<Result<Given<T>, Arc<TokenError>>>;
type Inputs<T> = Input<T, Waiter<T>, Arc<TokenError>>;
type Asked<T> = Pin<Box<dyn Future<Output = Result<T, TokenError>> + Send>>;

/// The one token, or set of keys, that all connections of a handle use.
pub(super) struct Shared<T> {
    asking: Asking<T>,
    /// The way to the task, which starts with the first who wants a token and ends with the handle, or with the runtime
    /// that it was started in: then the next starts another.
    way: Mutex<Way<T>>,
}

/// The way to the task.
enum Way<T> {
    Open(mpsc::UnboundedSender<Inputs<T>>),
    /// There is no task: whoever wants something starts one.
    None,
    /// The handle was closed.
    Closed,
}

/// Who is asked for what.
#[derive(Clone)]
struct Asking<T> {
    ask: Arc<dyn Fn() -> Asked<T> + Send + Sync>,
    /// Whom, in words.
    whom: Arc<str>,
    /// How long the provider may take: whoever waits for it waits no longer than for a connection.
    patience: Duration,
    kind: KindOf<T>,
    wall_clock: Arc<dyn WallClock>,
    seed: u64,
}

/// What is to be known of what a provider brings.
#[derive(Clone, Copy)]
struct KindOf<T> {
    what: &'static str,
    /// Why the mechanism cannot carry it, if it cannot.
    fault: fn(&T) -> Option<String>,
    end: fn(&T) -> Option<SystemTime>,
}

impl Shared<BearerToken> {
    pub(super) fn tokens(provider: Arc<dyn TokenProvider>, patience: Duration, environment: &Environment) -> Self {
        let whom = provider.name();
        let ask = move || -> Asked<BearerToken> {
            let provider = provider.clone();
            Box::pin(async move { provider.token().await })
        };
        let kind = KindOf { what: "bearer token", fault: BearerToken::fault, end: BearerToken::end };
        Self::new(ask, &whom, kind, patience, environment)
    }
}

impl Shared<AwsCredentials> {
    pub(super) fn keys(
        provider: Arc<dyn AwsCredentialsProvider>,
        patience: Duration,
        environment: &Environment,
    ) -> Self {
        let ask = move || -> Asked<AwsCredentials> {
            let provider = provider.clone();
            Box::pin(async move { provider.credentials().await })
        };
        let fault = |keys: &AwsCredentials| keys.fault().map(str::to_owned);
        let kind = KindOf { what: "set of AWS credentials", fault, end: AwsCredentials::end };
        Self::new(ask, AWS, kind, patience, environment)
    }
}

/// Who brings the keys of AWS.
pub(super) const AWS: &str = "the provider of AWS credentials";

impl<T: Clone + Send + 'static> Shared<T> {
    fn new(
        ask: impl Fn() -> Asked<T> + Send + Sync + 'static,
        whom: &str,
        kind: KindOf<T>,
        patience: Duration,
        environment: &Environment,
    ) -> Self {
        let (wall_clock, seed) = (environment.clock(), environment.seed());
        Self {
            asking: Asking { ask: Arc::new(ask), whom: whom.into(), patience, kind, wall_clock, seed },
            way: Mutex::new(Way::None),
        }
    }

    /// The one that there is, or a new one.
    pub(super) async fn get(&self) -> Result<Given<T>, KrafkaError> {
        let (waiter, token) = oneshot::channel();
        // A task that ends meanwhile drops the waiter with the input, which then says so.
        self.tell(Input::Wanted { waiter });
        match token.await {
            Ok(given) => given.map_err(|why| missing(self.asking.kind.what, &why)),
            Err(_) => Err(KrafkaError::closed("the Kafka handle was closed")),
        }
    }

    /// A broker does not take the one of this number.
    pub(super) fn refused(&self, number: u64) {
        // A task that ends meanwhile has none to drop.
        self.tell(Input::Refused { number });
    }

    /// Ends the task: the provider is asked no more.
    pub(super) fn close(&self) {
        *self.way() = Way::Closed;
    }

    fn way(&self) -> MutexGuard<'_, Way<T>> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the task, which is started if there is none. What the input carries fails as it is dropped.
    fn tell(&self, input: Inputs<T>) {
        let mut way = self.way();
        let inputs = match &*way {
            Way::Closed => return,
            Way::Open(inputs) if !inputs.is_closed() => inputs.clone(),
            Way::Open(_) | Way::None => {
                // Each connection attempt puts in one small input at most.
                let (inputs, receiver) = mpsc::unbounded_channel();
                tokio::spawn(run(self.asking.clone(), receiver));
                *way = Way::Open(inputs.clone());
                inputs
            }
        };
        let _ = inputs.send(input);
    }
}

async fn run<T: Clone + Send + 'static>(asking: Asking<T>, inputs: mpsc::UnboundedReceiver<Inputs<T>>) {
    let mut tokens = Tokens::new(asking.seed);
    drive::run(&mut tokens, inputs, |action, work| {
        match action {
            Action::Fetch { is_retry } => work.start(fetch(asking.clone(), is_retry)),
            // A waiter that is gone does not want to know.
            Action::Give { waiter, given } => drop(waiter.send(Ok(given))),
            Action::Refuse { waiter, why } => drop(waiter.send(Err(why))),
        }
        ControlFlow::Continue(())
    })
    .await;
}

async fn fetch<T>(asking: Asking<T>, is_retry: bool) -> Inputs<T> {
    let (KindOf { what, fault, end }, patience) = (asking.kind, asking.patience);
    let whom = asking.whom.clone();
    let late = |_| Err(format!("{whom} gave no credentials within {patience:?} (connect_timeout): is it slow?").into());
    // The provider is the user's, and this task everybody's.
    let asked = async { caught(|| (asking.ask)()).await.unwrap_or_else(panicked) };
    let judged = |token| fault(&token).map_or(Ok(token), |fault| Err(faulty(what, &fault)));
    match timeout(patience, asked).await.unwrap_or_else(late).and_then(judged) {
        Ok(token) => {
            let now = asking.wall_clock.now();
            let life = end(&token).map(|end| finite(end.duration_since(now).unwrap_or_default()));
            match is_retry {
                true => tracing::info!(?life, "got a {what} again"),
                false => tracing::debug!(?life, "got a {what}"),
            }
            Input::Fetched { token, life }
        }
        Err(why) => {
            // A provider that is down for an hour is one line.
            match is_retry {
                true => tracing::debug!(%why, "got no {what}"),
                false => tracing::warn!(%why, "got no {what}; it is asked for again, ever more slowly"),
            }
            Input::Failed { why: Arc::new(why) }
        }
    }
}

#[cold]
fn panicked<T>(panicked: Panicked) -> Result<T, TokenError> {
    Err(format!("the provider failed: {panicked}").into())
}

/// What no mechanism can carry never takes the place of one that still holds. Whoever waits for it hears that it is no
/// use to go on so.
#[cold]
fn faulty(what: &str, fault: &str) -> TokenError {
    KrafkaError::auth(format!("the provider brought a {what} that cannot be used: {fault}")).into()
}

/// A provider that failed may succeed later, unless it says itself that it will not.
#[cold]
fn missing(what: &str, why: &Arc<TokenError>) -> KrafkaError {
    match why.downcast_ref::<KrafkaError>() {
        Some(error) => error.clone(),
        None => KrafkaError::network(format!("asking for a {what}"), std::io::Error::other(Told(why.clone()))),
    }
}

/// What a provider said, shared by all who waited: the source of their errors.
#[derive(Debug, Clone)]
struct Told(Arc<TokenError>);

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Told {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AU-10: the task lives in the runtime of whoever asked first, which may end before the handle.
    #[test]
    fn a_task_that_ended_with_its_runtime_is_started_anew() {
        let provider = Arc::new(BearerToken::new("t"));
        let shared = Shared::tokens(provider, Duration::from_secs(1), &Environment::default());
        let first = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let second = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        first.block_on(shared.get()).expect("a token");
        drop(first);

        let given = second.block_on(shared.get()).expect("a token all the same");

        assert_eq!((given.number, given.is_new), (1, true), "it was brought by a new task");
    }
}
