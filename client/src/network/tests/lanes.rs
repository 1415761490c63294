//! What a connection's lane decides on the wire.

use super::*;

/// How many requests are written on a lane to a peer that reads and does not answer.
async fn unanswered_on(lane: Lane) -> usize {
    let (network, mut peers) = network_with(64 * 1024, Writes::Vectored, 1);
    let (node, mut peer) = (node(), peers.remove(0));
    let (connection, ()) = tokio::join!(network.connection(&node, lane), peer.shake_hands());
    let connection = connection.expect("the peer shook hands");
    let mut calls: VecDeque<_> = (0..60).map(|_| heartbeat(&connection)).collect();
    let mut came = VecDeque::new();

    while let Ok(one) = tokio::time::timeout(SECOND, peer.next()).await {
        came.push_back(one);
    }
    let written = came.len();

    // Each answer lets one more be written.
    let oldest = came.pop_front().expect("one at least");
    peer.answer(&oldest, &beat(0)).await;
    calls.pop_front().expect("sixty of them").await.expect("it was answered");
    peer.next().await;
    tokio::time::timeout(SECOND, peer.next()).await.expect_err("one, and no more");
    written
}

/// Five Produce requests are on their way at a time, which is what a broker remembers of an idempotent producer;
/// more would only wait in its socket buffer, and time out there. Other lanes have a limit of their own.
#[tokio::test(start_paused = true)]
async fn so_many_requests_are_in_flight_on_a_lane_and_no_more() {
    assert_eq!(unanswered_on(Lane::Produce).await, 5);
    for lane in [Lane::Fetch(1), Lane::Coordination(1), Lane::Join(1), Lane::Control, Lane::Own(1)] {
        assert_eq!(unanswered_on(lane).await, 10, "{lane:?}");
    }
}
