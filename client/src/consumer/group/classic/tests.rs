//! The classic member by script: every state × every input, and what its heartbeats do.

use std::time::Duration;

use krafka_protocol::api::join_group::JoinGroupResponseMember;
use krafka_protocol::script::Script;

use super::*;
use crate::backoff::Backoff;
use crate::consumer::assign::Replicas;

const SECOND: Duration = Duration::from_secs(1);

fn member(instance: Option<&'static str>) -> impl Fn(Instant) -> Member {
    member_in(None, instance)
}

fn member_in(rack: Option<&'static str>, instance: Option<&'static str>) -> impl Fn(Instant) -> Member {
    move |_| {
        let config = MemberConfig {
            group_id: Str::from("g"),
            group_instance_id: instance.map(Str::from),
            rack: rack.map(Str::from),
            session_timeout: SECOND * 45,
            rebalance_timeout: SECOND * 300,
            heartbeat_interval: SECOND * 3,
            backoff: Backoff::new(SECOND / 10, SECOND),
        };
        Member::new(config, Rng::new(1))
    }
}

fn topics(names: &[&'static str]) -> BTreeSet<Str> {
    names.iter().map(|&name| Str::from(name)).collect()
}

/// So many partitions of topic t, in no rack.
fn counts(partitions: usize) -> Whereabouts {
    placed(vec![Replicas::default(); partitions])
}

/// The partitions of topic t.
fn placed(partitions: Vec<Replicas>) -> Whereabouts {
    Whereabouts::from_iter([(Str::from("t"), partitions)])
}

/// Replicas on the nodes 1, 2, …, by the letters of their racks; `-` is down, and `.` has none.
fn replicas(racks: &str) -> Replicas {
    let mut replicas = Replicas::default();
    for (node, rack) in (1..).zip(racks.chars()) {
        match rack {
            '-' => drop(replicas.offline.insert(node)),
            '.' => {}
            _ => drop(replicas.online.insert(node, Str::from(rack.to_string()))),
        }
    }
    replicas
}

fn subscription(names: &[&'static str]) -> krafka_protocol::Bytes {
    let topics = names.iter().map(|&name| Str::from(name)).collect();
    Subscription { topics, ..Subscription::default() }.to_bytes(HIGHEST_VERSION).expect("it is short")
}

/// A JoinGroup answer that makes `m` a member, and its leader if it says so.
fn admitted(leader: &'static str) -> JoinGroupResponse {
    let member = |id: &'static str| JoinGroupResponseMember {
        member_id: Str::from(id),
        group_instance_id: None,
        metadata: subscription(&["t"]),
    };
    JoinGroupResponse {
        generation_id: 7,
        leader: Str::from(leader),
        member_id: Str::from("m"),
        members: if leader == "m" { vec![member("m"), member("n")] } else { Vec::new() },
        ..JoinGroupResponse::default()
    }
}

fn refused_join(code: ErrorCode) -> JoinGroupResponse {
    JoinGroupResponse { error_code: code.0, member_id: Str::from("m"), ..JoinGroupResponse::default() }
}

fn synced(partitions: &[i32]) -> SyncGroupResponse {
    let topic = TopicPartition { topic: Str::from("t"), partitions: partitions.to_vec() };
    let assignment = Assignment { assigned_partitions: vec![topic], user_data: None };
    let assignment = assignment.to_bytes(HIGHEST_VERSION).expect("it is short");
    SyncGroupResponse { assignment, ..SyncGroupResponse::default() }
}

fn refused_sync(code: ErrorCode) -> SyncGroupResponse {
    SyncGroupResponse { error_code: code.0, ..SyncGroupResponse::default() }
}

fn beaten(code: ErrorCode) -> Input {
    let answer = HeartbeatResponse { error_code: code.0, ..HeartbeatResponse::default() };
    Input::Beaten { generation: 7, answer: Ok(answer) }
}

fn lost_connection() -> KrafkaError {
    KrafkaError::network("asking the coordinator", std::io::Error::from(std::io::ErrorKind::ConnectionReset))
}

/// What a member wants done, each action in a word.
fn words(script: &mut Script<Member>) -> Vec<String> {
    let word = |action| match action {
        Action::Release { lost: false } => "release".to_owned(),
        Action::Release { lost: true } => "lose".to_owned(),
        Action::Join { request, .. } if request.member_id.is_empty() => "join as nobody".to_owned(),
        Action::Join { request, .. } => format!("join as {}", request.member_id),
        Action::Count { .. } => "count".to_owned(),
        Action::Sync { request, .. } => format!("sync {}", request.assignments.len()),
        Action::Beat(request) => format!("beat {}", request.generation_id),
        Action::Leave(request) => format!("leave as {}", request.members[0].member_id),
        Action::Assigned(partitions) => format!("assigned {}", partitions.len()),
        Action::Failed(_) => "failed".to_owned(),
    };
    script.actions().into_iter().map(word).collect()
}

type Drive = fn(&mut Script<Member>);

/// An input, and what the member does then.
type Line = (&'static str, &'static [&'static str]);

fn outside(_: &mut Script<Member>) {}

fn joining(script: &mut Script<Member>) {
    script.input(Input::Subscribed(topics(&["t"])));
}

/// Known to the coordinator as `m`, and joining again after a backoff.
fn resting(script: &mut Script<Member>) {
    joining(script);
    script.input(Input::Joined { round: 1, answer: Ok(refused_join(ErrorCode::MEMBER_ID_REQUIRED)) });
    script.input(Input::Joined { round: 2, answer: Err(lost_connection()) });
}

fn counting(script: &mut Script<Member>) {
    joining(script);
    script.input(Input::Joined { round: 1, answer: Ok(admitted("m")) });
}

fn syncing(script: &mut Script<Member>) {
    joining(script);
    script.input(Input::Joined { round: 1, answer: Ok(admitted("n")) });
}

fn stable(script: &mut Script<Member>) {
    syncing(script);
    script.input(Input::Synced { round: 1, answer: Ok(synced(&[0])) });
}

fn releasing(script: &mut Script<Member>) {
    stable(script);
    script.input(beaten(ErrorCode::REBALANCE_IN_PROGRESS));
}

fn failed(script: &mut Script<Member>) {
    joining(script);
    script.input(Input::Joined { round: 1, answer: Ok(refused_join(ErrorCode::GROUP_AUTHORIZATION_FAILED)) });
}

/// The inputs, by name.
fn input(name: &str, round: u64) -> Input {
    let code = |code: ErrorCode| Ok(refused_join(code));
    match name {
        "subscribed" => Input::Subscribed(topics(&["t"])),
        "subscribed anew" => Input::Subscribed(topics(&["t", "u"])),
        "unsubscribed" => Input::Unsubscribed,
        "released" => Input::Released,
        "returned" => Input::Returned,
        "idle" => Input::Idle,
        "ousted: unknown" => Input::Ousted(ErrorCode::UNKNOWN_MEMBER_ID),
        "ousted: generation" => Input::Ousted(ErrorCode::ILLEGAL_GENERATION),
        "ousted: fenced" => Input::Ousted(ErrorCode::FENCED_INSTANCE_ID),
        "counted" => Input::Counted { round, counts: counts(4) },
        "recounted" => Input::Recounted(counts(5)),
        "joined as leader" => Input::Joined { round, answer: Ok(admitted("m")) },
        "joined as follower" => Input::Joined { round, answer: Ok(admitted("n")) },
        "joined: stale" => Input::Joined { round: round + 9, answer: Ok(refused_join(ErrorCode::MEMBER_ID_REQUIRED)) },
        "joined: id required" => Input::Joined { round, answer: code(ErrorCode::MEMBER_ID_REQUIRED) },
        "joined: unknown" => Input::Joined { round, answer: code(ErrorCode::UNKNOWN_MEMBER_ID) },
        "joined: loading" => Input::Joined { round, answer: code(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS) },
        "joined: full" => Input::Joined { round, answer: code(ErrorCode::GROUP_MAX_SIZE_REACHED) },
        "joined: lost" => Input::Joined { round, answer: Err(lost_connection()) },
        "synced" => Input::Synced { round, answer: Ok(synced(&[0, 1])) },
        "synced: rebalance" => Input::Synced { round, answer: Ok(refused_sync(ErrorCode::REBALANCE_IN_PROGRESS)) },
        "synced: unknown" => Input::Synced { round, answer: Ok(refused_sync(ErrorCode::UNKNOWN_MEMBER_ID)) },
        "synced: fenced" => Input::Synced { round, answer: Ok(refused_sync(ErrorCode::FENCED_INSTANCE_ID)) },
        "synced: garbage" => Input::Synced {
            round,
            answer: Ok(SyncGroupResponse { assignment: vec![0, 0, 0].into(), ..SyncGroupResponse::default() }),
        },
        "beaten" => beaten(ErrorCode::NONE),
        "beaten: rebalance" => beaten(ErrorCode::REBALANCE_IN_PROGRESS),
        "beaten: unknown" => beaten(ErrorCode::UNKNOWN_MEMBER_ID),
        "beaten: generation" => beaten(ErrorCode::ILLEGAL_GENERATION),
        "beaten: fenced" => beaten(ErrorCode::FENCED_INSTANCE_ID),
        "beaten: moved" => beaten(ErrorCode::NOT_COORDINATOR),
        "beaten: old" => Input::Beaten { generation: 6, answer: Ok(refused_heartbeat()) },
        other => panic!("no input is called {other}"),
    }
}

fn refused_heartbeat() -> HeartbeatResponse {
    HeartbeatResponse { error_code: ErrorCode::UNKNOWN_MEMBER_ID.0, ..HeartbeatResponse::default() }
}

/// Every state × every input that means something there: what the member does at once, and within the next second.
#[test]
fn the_table() {
    let table: &[(&str, Drive, &[Line])] = &[
        (
            "outside",
            outside,
            &[
                ("subscribed", &["join as nobody"]),
                ("unsubscribed", &[]),
                ("released", &[]),
                ("returned", &[]),
                ("idle", &[]),
                ("recounted", &[]),
                ("joined as leader", &["leave as m"]),
                ("synced", &[]),
                ("beaten: unknown", &[]),
                ("ousted: unknown", &[]),
            ],
        ),
        (
            "joining",
            joining,
            &[
                ("subscribed anew", &[]),
                ("unsubscribed", &[]),
                ("released", &[]),
                ("idle", &["lose"]),
                ("recounted", &[]),
                ("joined as leader", &["count"]),
                ("joined as follower", &["sync 0"]),
                ("joined: stale", &["leave as m"]),
                ("joined: id required", &["join as m"]),
                ("joined: unknown", &["join as nobody"]),
                ("joined: loading", &["join as nobody"]),
                ("joined: full", &["failed"]),
                ("joined: lost", &["join as nobody"]),
                ("synced", &[]),
                ("beaten: unknown", &[]),
                ("ousted: unknown", &[]),
            ],
        ),
        (
            "resting",
            resting,
            &[
                ("subscribed", &["join as m"]),
                ("unsubscribed", &["leave as m"]),
                ("released", &["join as m"]),
                ("idle", &["leave as m", "lose"]),
                ("joined as leader", &["join as m"]),
                ("beaten", &["join as m"]),
            ],
        ),
        (
            "counting",
            counting,
            &[
                ("subscribed anew", &[]),
                ("unsubscribed", &["leave as m"]),
                ("counted", &["sync 2"]),
                ("recounted", &[]),
                ("idle", &["leave as m", "lose"]),
                ("synced", &[]),
            ],
        ),
        (
            "syncing",
            syncing,
            &[
                ("subscribed anew", &[]),
                ("unsubscribed", &["leave as m"]),
                ("counted", &[]),
                ("idle", &["leave as m", "lose"]),
                ("synced", &["assigned 2"]),
                ("synced: rebalance", &["join as m"]),
                ("synced: unknown", &["join as nobody"]),
                ("synced: fenced", &["failed"]),
                ("synced: garbage", &["join as m"]),
                ("beaten: unknown", &[]),
            ],
        ),
        (
            "stable",
            stable,
            &[
                ("subscribed", &[]),
                ("subscribed anew", &["release"]),
                ("unsubscribed", &["leave as m"]),
                ("released", &[]),
                ("recounted", &[]),
                ("idle", &["leave as m", "lose"]),
                ("returned", &[]),
                ("joined as leader", &[]),
                ("synced", &[]),
                ("beaten", &[]),
                ("beaten: rebalance", &["release"]),
                ("beaten: unknown", &["lose"]),
                ("beaten: generation", &["lose"]),
                ("beaten: fenced", &["lose", "failed"]),
                ("beaten: moved", &["beat 7"]),
                ("beaten: old", &[]),
                ("ousted: unknown", &["lose"]),
                ("ousted: generation", &["lose"]),
                ("ousted: fenced", &["lose", "failed"]),
            ],
        ),
        (
            "releasing",
            releasing,
            &[
                ("subscribed anew", &[]),
                ("unsubscribed", &["leave as m"]),
                ("released", &["join as m"]),
                ("idle", &["leave as m", "lose"]),
                ("beaten: rebalance", &[]),
                ("beaten: unknown", &["lose"]),
                ("ousted: generation", &["lose"]),
            ],
        ),
        (
            "failed",
            failed,
            &[
                ("subscribed", &["join as nobody"]),
                ("unsubscribed", &[]),
                ("released", &[]),
                ("returned", &[]),
                ("idle", &[]),
                ("joined as leader", &["leave as m"]),
                ("beaten: unknown", &[]),
            ],
        ),
    ];
    for (state, drive, lines) in table {
        for (name, expected) in *lines {
            Script::run(member(None), |script| {
                drive(script);
                script.actions();
                let round = script.machine().round;

                script.input(input(name, round)).after(SECOND);

                assert_eq!(words(script), *expected, "{state}, {name}");
            });
        }
    }
}

#[test]
fn heartbeats_go_out_while_partitions_are_being_given_up() {
    Script::run(member(None), |script| {
        stable(script);
        script.actions();

        script.after(SECOND * 3);
        assert_eq!(words(script), ["beat 7"]);
        script.input(beaten(ErrorCode::REBALANCE_IN_PROGRESS)).after(SECOND * 3);

        assert_eq!(words(script), ["release", "beat 7"]);
    });
}

#[test]
fn a_session_without_answers_is_lost_once() {
    Script::run(member(None), |script| {
        stable(script);
        script.actions();

        script.after(SECOND * 44);
        assert_eq!(words(script), ["beat 7"]);
        script.after(SECOND).input(Input::Released).input(beaten(ErrorCode::NONE));

        assert_eq!(words(script), ["lose", "join as m"]);
    });
}

/// What the leader's SyncGroup, the only thing that it asks for, gives each member of its one topic.
fn shares(script: &mut Script<Member>) -> Vec<(String, Vec<i32>)> {
    let actions = script.actions();
    let [Action::Sync { request, .. }] = &actions[..] else { panic!("{actions:?}") };
    let share = |assignment: &SyncGroupRequestAssignment| {
        let share = Assignment::from_bytes(assignment.assignment.clone()).expect("it decodes");
        (assignment.member_id.to_string(), share.assigned_partitions[0].partitions.clone())
    };
    request.assignments.iter().map(share).collect()
}

#[test]
fn the_leader_shares_out_the_partitions_that_there_are() {
    Script::run(member(None), |script| {
        counting(script);
        script.actions();

        script.input(input("counted", 1));

        assert_eq!(shares(script), [("m".to_owned(), vec![0, 1]), ("n".to_owned(), vec![2, 3])]);
    });
}

#[test]
fn the_leader_rebalances_when_a_topic_grows_and_a_follower_does_not() {
    let leads: Drive = |script| {
        counting(script);
        script.input(input("counted", 1)).input(Input::Synced { round: 1, answer: Ok(synced(&[0])) });
    };
    for (drive, expected) in [(leads, vec!["release"]), (stable as Drive, vec![])] {
        Script::run(member(None), |script| {
            drive(script);
            script.actions();

            script.input(Input::Recounted(counts(4)));
            script.input(Input::Recounted(counts(5)));

            let expected = if expected.is_empty() { vec![] } else { expected.clone() };
            assert_eq!(words(script), expected);
        });
    }
}

/// MD-23: a leader that has a rack rebalances when those of its partitions change, which they do not where a broker is
/// only down; nobody else does. So it is in Java 4.4 (`PartitionRackInfo.equivalentTo`).
#[test]
fn the_leader_rebalances_when_racks_change_if_it_has_one_itself() {
    let table = [
        ("ab", "ab", false, "nothing has changed"),
        ("ab", "a-", false, "a broker is down"),
        ("a-", "ab", false, "a broker that was down is back"),
        ("-b", "a-", false, "one is back when the other goes"),
        ("ab", "--", false, "all are down"),
        ("ab", "ba", false, "they are in the same racks"),
        ("ab", "bab", false, "one more is in a rack that has one"),
        ("aab", "ab", false, "one less is in a rack that has another"),
        ("ab", "ac", true, "a broker has moved"),
        ("ab", "a.", true, "a broker is in no rack any more"),
        ("a.", "ab", true, "a broker is in a rack that was in none"),
        ("ab", "a", true, "a replica is gone"),
        ("a", "ab", true, "a replica is new"),
        ("ab", "c-", true, "one has moved while the other is down"),
        ("a-", "a-b", true, "a new one is in the rack of nobody"),
        ("a-b", "ab.", false, "who was down may be anywhere, and its rack has another"),
    ];
    for (before, after, is_changed, why) in table {
        for rack in [Some("b"), None] {
            Script::run(member_in(rack, None), |script| {
                counting(script);
                script.input(Input::Counted { round: 1, counts: placed(vec![replicas("ab"), replicas(before)]) });
                script.input(Input::Synced { round: 1, answer: Ok(synced(&[0])) });
                script.actions();

                script.input(Input::Recounted(placed(vec![replicas("ab"), replicas(after)])));

                let expected = if is_changed && rack.is_some() { vec!["release"] } else { vec![] };
                assert_eq!(words(script), expected, "{why}: {before} → {after}, leader in {rack:?}");
            });
        }
    }
}

/// MD-23: what counts is how it was when the partitions were shared out, whatever came between.
#[test]
fn a_broker_that_comes_back_in_another_rack_has_moved() {
    Script::run(member_in(Some("b"), None), |script| {
        counting(script);
        script.input(Input::Counted { round: 1, counts: placed(vec![replicas("ab")]) });
        script.input(Input::Synced { round: 1, answer: Ok(synced(&[0])) });
        script.actions();

        script.input(Input::Recounted(placed(vec![replicas("a-")])));
        assert_eq!(words(script), [""; 0]);
        script.input(Input::Recounted(placed(vec![replicas("ac")])));

        assert_eq!(words(script), ["release"]);
    });
}

#[test]
fn a_member_says_in_which_rack_it_is() {
    for rack in [None, Some("b")] {
        Script::run(member_in(rack, None), |script| {
            script.input(input("subscribed", 0));

            let actions = script.actions();
            let [Action::Join { request, .. }] = &actions[..] else { panic!("{actions:?}") };
            let subscription = Subscription::from_bytes(request.protocols[0].metadata.clone()).expect("it decodes");
            assert_eq!(subscription.rack_id.as_deref(), rack);
        });
    }
}

/// MD-23.
#[test]
fn the_leader_gives_members_what_is_near_them() {
    Script::run(member(None), |script| {
        joining(script);
        let mut answer = admitted("m");
        for (member, rack) in answer.members.iter_mut().zip(["b", "a"]) {
            let topics = vec![Str::from("t")];
            let subscription = Subscription { topics, rack_id: Some(Str::from(rack)), ..Subscription::default() };
            member.metadata = subscription.to_bytes(HIGHEST_VERSION).expect("it is short");
        }
        script.input(Input::Joined { round: 1, answer: Ok(answer) });
        script.actions();

        let counts = placed(vec![replicas("a"), replicas("b")]);
        script.input(Input::Counted { round: 1, counts });

        assert_eq!(shares(script), [("m".to_owned(), vec![1]), ("n".to_owned(), vec![0])]);
    });
}

#[test]
fn a_returning_static_leader_leaves_the_assignment_as_it_is() {
    Script::run(member(Some("i")), |script| {
        joining(script);
        let answer = JoinGroupResponse { skip_assignment: true, ..admitted("m") };
        script.input(Input::Joined { round: 1, answer: Ok(answer) });
        script.actions();

        script.input(input("counted", 1));

        assert_eq!(words(script), ["sync 0"]);
    });
}

#[test]
fn a_static_member_does_not_leave() {
    Script::run(member(Some("i")), |script| {
        stable(script);
        script.actions();

        script.input(Input::Unsubscribed);

        assert_eq!(words(script), [""; 0]);
        script.close(Input::Unsubscribed, |member| usize::from(!member.is_outside()));
    });
}

#[test]
fn a_join_that_keeps_failing_is_tried_at_growing_distances() {
    Script::run(member(None), |script| {
        joining(script);
        script.actions();

        for round in 1..=20 {
            script.input(Input::Joined { round, answer: Err(lost_connection()) }).after(SECOND * 2);
            assert_eq!(words(script), ["join as nobody"], "round {round}");
        }

        script.input(Input::Joined { round: 21, answer: Err(lost_connection()) }).after(SECOND / 2);
        assert_eq!(words(script), [""; 0], "by now it waits about a second");
    });
}

#[test]
fn topics_that_change_during_a_join_are_joined_for_next() {
    Script::run(member(None), |script| {
        syncing(script);
        script.actions();

        script.input(input("subscribed anew", 1)).input(input("synced", 1)).input(Input::Released);

        assert_eq!(words(script), ["assigned 2", "release", "join as m"]);
    });
}

#[test]
fn an_idle_member_joins_when_its_user_returns() {
    Script::run(member(None), |script| {
        stable(script);
        script.actions();

        script.input(Input::Idle).input(Input::Released).input(Input::Returned);

        assert_eq!(words(script), ["leave as m", "lose", "join as nobody"]);
    });
}
