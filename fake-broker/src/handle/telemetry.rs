//! What clients reported about themselves.

use super::FakeCluster;
use crate::telemetry::TelemetryPush;

impl FakeCluster {
    /// Returns the metrics that clients pushed, the oldest first: as many as are kept. Clients push if the cluster was
    /// built with [`client_telemetry`](crate::FakeClusterBuilder::client_telemetry) and a config of client metrics asks
    /// them to.
    ///
    /// **Unstable:** may change in any release.
    pub fn telemetry(&self) -> Vec<TelemetryPush> {
        self.look(|state| state.telemetry.pushes.iter().cloned().collect())
    }
}
