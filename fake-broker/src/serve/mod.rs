//! The shells: what carries bytes and time to and from the cluster machine.
//!
//! All of them share one lock around the machine, held while one input is handled and never across an `.await`. Each
//! connection is a task that reads, asks the machine, and writes what it is told to; one more task sleeps until the
//! machine's next deadline.

pub(crate) mod control;
pub(crate) mod driver;
pub(crate) mod pipe;
mod sockets;
pub(crate) mod tcp;
#[cfg(feature = "tls")]
pub(crate) mod tls;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use krafka_protocol::frame::Frame;
use krafka_protocol::{Machine, Str};
use tokio::sync::{Notify, mpsc, watch};

use self::sockets::Sockets;
use crate::clock::Clock;
use crate::cluster::{Action, Cluster, Input};
use crate::context::ConnectionId;
use crate::faults::{Ending, Hits};
use crate::listeners::SecurityProtocol;

/// The machine, and the tasks that it talks to.
#[derive(Debug)]
pub(crate) struct Shared {
    core: Mutex<Core>,
    clock: Arc<dyn Clock>,
    /// Told when the machine's deadline came closer than the sleeping task knows.
    deadline_moved: Notify,
    /// Where the nodes listen, if they do on TCP.
    sockets: Sockets,
    /// Counts the changes of who listens where, for those who accept on the ports.
    nodes_changed: watch::Sender<u64>,
    /// Counts the steps of the machine, for those who wait for something to become so.
    steps: Hits,
}

#[derive(Debug)]
struct Core {
    cluster: Cluster,
    /// Where each connection's task takes its orders from. A connection has at most one request that is not answered,
    /// so that no more than a few orders ever wait.
    orders: BTreeMap<ConnectionId, mpsc::UnboundedSender<Order>>,
    next_connection: u64,
    /// What the sleeping task sleeps until.
    deadline: Option<Instant>,
    /// Whether the cluster's handle is gone.
    ended: bool,
}

/// One port of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) node: i32,
    pub(crate) listener: SecurityProtocol,
}

/// What a connection's task is told to do.
#[derive(Debug)]
pub(crate) enum Order {
    /// Write a frame.
    Write(Frame),
    /// Hand over the next request.
    Read,
    /// Close the connection when all is written.
    Finish,
    /// Close the connection, whatever is not written yet.
    Close,
    /// Reset the connection.
    Reset,
}

impl Shared {
    pub(crate) fn new(cluster: Cluster, clock: Arc<dyn Clock>) -> Arc<Self> {
        let core = Core { cluster, orders: BTreeMap::new(), next_connection: 0, deadline: None, ended: false };
        #[expect(
            clippy::disallowed_methods,
            reason = "only the TCP shell listens, whose runs are not repeated exactly"
        )]
        let (nodes_changed, _) = watch::channel(0);
        Arc::new(Self {
            core: Mutex::new(core),
            clock,
            deadline_moved: Notify::new(),
            sockets: Sockets::default(),
            nodes_changed,
            steps: Hits::default(),
        })
    }

    /// What time it is.
    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Looks into the machine.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Cluster) -> T) -> T {
        look(&self.lock().cluster)
    }

    /// Moves the machine, and hands out the actions that follow.
    pub(crate) fn step<T>(&self, step: impl FnOnce(&mut Cluster, Instant) -> T) -> T {
        let mut core = self.lock();
        let now = self.clock.now();
        let result = step(&mut core.cluster, now);
        self.hand_out(&mut core, now);
        drop(core);
        self.steps.raise();
        result
    }

    /// Waits until the network lets new connections to a node through, or until there is no cluster any more.
    async fn until_reachable(&self, node: i32) {
        loop {
            // Counted first: a step that comes while we look is not missed.
            let seen = self.steps.count();
            let is_unreachable = self.look(|cluster| cluster.is_unreachable(node, self.clock.now()));
            if !is_unreachable || self.steps.reach(seen + 1).await.is_err() {
                return;
            }
        }
    }

    /// Opens a connection to a node. Returns nothing when the cluster has ended.
    fn open(&self, port: Port, subject: Option<Str>) -> Option<(ConnectionId, mpsc::UnboundedReceiver<Order>)> {
        let mut core = self.lock();
        if core.ended {
            return None;
        }
        let connection = ConnectionId(core.next_connection);
        core.next_connection += 1;
        // A connection has one request at work, so that few orders wait.
        let (sender, orders) = mpsc::unbounded_channel();
        core.orders.insert(connection, sender);
        let now = self.clock.now();
        core.cluster.handle(Input::Opened { connection, node: port.node, listener: port.listener, subject }, now);
        self.hand_out(&mut core, now);
        drop(core);
        self.steps.raise();
        Some((connection, orders))
    }

    /// Tells the machine that a connection is gone.
    fn closed(&self, connection: ConnectionId) {
        let mut core = self.lock();
        let now = self.clock.now();
        core.orders.remove(&connection);
        core.cluster.handle(Input::Closed { connection }, now);
        self.hand_out(&mut core, now);
        drop(core);
        self.steps.raise();
    }

    /// Ends all connections, and refuses new ones.
    pub(crate) fn end(&self) {
        let mut core = self.lock();
        core.ended = true;
        core.orders.clear();
        drop(core);
        self.sockets.end();
        self.steps.end(Ending::ClusterEnded);
        self.nodes_changed.send_modify(|_| ());
    }

    /// Whether connections to a node may go on.
    #[cfg(feature = "tls")]
    fn is_up(&self, node: i32) -> bool {
        let core = self.lock();
        !core.ended && core.cluster.state().nodes.is_running(node)
    }

    /// How many steps the machine has done; it can be waited for the next.
    pub(crate) fn steps(&self) -> &Hits {
        &self.steps
    }

    /// Notes what the machine waits for now, and says how long that is from now.
    fn until_deadline(&self) -> Option<Duration> {
        let mut core = self.lock();
        core.deadline = core.cluster.deadline();
        core.deadline.map(|deadline| deadline.saturating_duration_since(self.clock.now()))
    }

    /// Listens on a node's socket, for as long as the node is there.
    pub(crate) fn listen(&self, listener: tcp::Listener) {
        self.sockets.add(listener);
        self.settle_sockets();
    }

    /// Tries once more to listen where a node is to.
    fn settle_sockets(&self) {
        self.settle(&self.lock());
    }

    /// Listens where the nodes say that they are. A node that is at another port of 127.0.0.1 listens there.
    fn settle(&self, core: &Core) {
        let nodes = &core.cluster.state().nodes;
        self.sockets.settle(|port| {
            let number = *nodes.find(port.node)?.ports.get(&port.listener)?;
            nodes.is_listening(port.node).then_some(SocketAddr::from((Ipv4Addr::LOCALHOST, number)))
        });
    }

    fn hand_out(&self, core: &mut Core, now: Instant) {
        while let Some(action) = core.cluster.poll(now) {
            let (connection, order) = match action {
                Action::Write { connection, frame } => (connection, Order::Write(frame)),
                Action::Read { connection } => (connection, Order::Read),
                Action::Finish { connection } => (connection, Order::Finish),
                Action::Close { connection } => (connection, Order::Close),
                Action::Reset { connection } => (connection, Order::Reset),
            };
            if let Some(orders) = core.orders.get(&connection) {
                // A task that is gone reports that its connection is closed; until then its orders go nowhere.
                let _ = orders.send(order);
            }
        }
        let changes = core.cluster.state().nodes.changes();
        if *self.nodes_changed.borrow() != changes {
            self.settle(core);
            self.nodes_changed.send_replace(changes);
        }
        let deadline = core.cluster.deadline();
        if deadline.is_some_and(|deadline| core.deadline.is_none_or(|known| deadline < known)) {
            core.deadline = deadline;
            self.deadline_moved.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        // A panic inside the machine has failed a test already; what others see then does not matter any more.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
