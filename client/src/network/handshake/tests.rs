//! The handshake by script: each answer is encoded as a broker would, in the version that was asked.

use std::error::Error;

use krafka_protocol::api::api_versions::ApiVersion;
use krafka_protocol::frame::encode_response;
use krafka_protocol::script::Script;
use krafka_protocol::{AnyRequest, decode_request_header};

use super::*;
use crate::auth::Plain;

type Test = Script<Handshake>;

const MAX: i16 = API_VERSIONS_MAX;

fn plain(scenario: impl Fn(&mut Test)) {
    handshake(|| Some(Exchange::Plain(Plain::new("alice", "hunter2"))), scenario);
}

fn handshake(exchange: impl Fn() -> Option<Exchange>, scenario: impl Fn(&mut Test)) {
    opened(Opening::Highest, exchange, scenario);
}

fn opened(opening: Opening, exchange: impl Fn() -> Option<Exchange>, scenario: impl Fn(&mut Test)) {
    let node = Node::bootstrap(0, "kafka", 9092);
    Script::run(|_| Handshake::new(node.clone(), "me".into(), exchange(), None, opening), scenario);
}

/// A handshake with broker 3 of a cluster, as far as the client knows.
fn known_broker(scenario: impl Fn(&mut Test)) {
    let node = Node { id: 3, host: "kafka".into(), port: 9092, rack: None };
    let cluster = Some(Str::from_static("cluster"));
    Script::run(|_| Handshake::new(node.clone(), "me".into(), None, cluster.clone(), Opening::Highest), scenario);
}

/// Whom the one request that was sent is meant for.
fn meant(script: &mut Test) -> (Option<Str>, i32, i16) {
    let (request, version) = sent(script);
    let AnyRequest::ApiVersions(request) = request else { panic!("{request:?}") };
    (request.cluster_id, request.node_id, version)
}

/// The one request that was sent since this was asked last, and its version.
fn sent(script: &mut Test) -> (AnyRequest, i16) {
    let [Action::Send(frame)] = &script.actions()[..] else { panic!("not one request") };
    let mut input = Reader::new(frame.to_bytes().slice(4..));
    let header = decode_request_header(&mut input).expect("a header");
    assert_eq!(header.client_id.as_deref(), Some("me"));
    let key = ApiKey::try_from(header.key).expect("a key of Kafka's");
    (AnyRequest::decode(key, header.version, &mut input).expect("a request"), header.version)
}

fn answer<M: Message>(script: &mut Test, key: ApiKey, version: i16, response: &M) {
    let correlation_id = script.machine().correlation_id;
    let frame = encode_response(key, response, version, correlation_id).expect("it can be encoded");
    script.input(frame.to_bytes().slice(4..));
}

fn api(key: ApiKey, min_version: i16, max_version: i16) -> ApiVersion {
    ApiVersion { api_key: key as i16, min_version, max_version }
}

fn advertised(error: ErrorCode, api_keys: Vec<ApiVersion>) -> ApiVersionsResponse {
    ApiVersionsResponse { error_code: error.0, api_keys, ..ApiVersionsResponse::default() }
}

fn answer_versions(script: &mut Test, version: i16) {
    let apis = vec![
        api(ApiKey::ApiVersions, 0, 4),
        api(ApiKey::SaslHandshake, 0, 1),
        api(ApiKey::SaslAuthenticate, 0, 2),
        api(ApiKey::Metadata, 0, 12),
    ];
    answer(script, ApiKey::ApiVersions, version, &advertised(ErrorCode::NONE, apis));
}

fn refuse_versions(script: &mut Test, api_keys: Vec<ApiVersion>) {
    answer(script, ApiKey::ApiVersions, 0, &advertised(ErrorCode::UNSUPPORTED_VERSION, api_keys));
}

/// The error that the handshake failed with.
fn failure(script: &mut Test) -> KrafkaError {
    match script.actions().pop() {
        Some(Action::Fail(error) | Action::Refuse(error)) => error,
        other => panic!("no failure: {other:?}"),
    }
}

#[test]
fn without_sasl_one_answer_is_enough() {
    handshake(
        || None,
        |script| {
            let (request, version) = sent(script);
            let AnyRequest::ApiVersions(request) = request else { panic!("{request:?}") };
            assert_eq!((version, &*request.client_software_name), (MAX, "krafka"));

            answer_versions(script, MAX);

            let actions = script.actions();
            let [Action::Finish { versions, session: None }] = &actions[..] else { panic!("{actions:?}") };
            assert_eq!(versions.range(ApiKey::Metadata), Some((0, 12)));
        },
    );
}

/// TH-01: from version 2 of ApiVersions on it is for the client to wait.
#[test]
fn an_answer_to_api_versions_may_ask_for_silence() {
    for (version, hushes) in [(1, false), (2, true)] {
        let opening = Opening::Known(version);
        let build = |_| Handshake::new(Node::bootstrap(0, "kafka", 9092), "me".into(), None, None, opening);
        Script::run(build, |script: &mut Test| {
            sent(script);
            let apis = vec![api(ApiKey::ApiVersions, 0, version)];
            let told = ApiVersionsResponse { throttle_time_ms: 5_000, ..advertised(ErrorCode::NONE, apis) };
            answer(script, ApiKey::ApiVersions, version, &told);

            let actions = script.actions();
            match hushes {
                true => assert!(matches!(actions[..], [Action::Hush(silence), Action::Finish { .. }]
                    if silence == Duration::from_secs(5))),
                false => assert!(matches!(actions[..], [Action::Finish { .. }])),
            }
        });
    }
}

/// AV-12: Kafka refuses names that do not fit its pattern.
#[test]
fn the_software_is_named_as_kafka_allows() {
    let fits = |text: &str| {
        let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        ends(text.chars().next())
            && ends(text.chars().last())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.')
    };

    assert!(fits(SOFTWARE_NAME) && fits(SOFTWARE_VERSION));
}

/// AV-01.
#[test]
fn a_refusal_that_names_a_range_costs_one_round_trip() {
    handshake(
        || None,
        |script| {
            sent(script);

            refuse_versions(script, vec![api(ApiKey::ApiVersions, 0, 2)]);
            let (_, version) = sent(script);
            assert_eq!(version, 2);

            answer_versions(script, 2);
            assert!(matches!(script.actions()[..], [Action::Finish { .. }]));
        },
    );
}

/// AV-02.
#[test]
fn a_refusal_without_a_range_means_version_zero() {
    handshake(
        || None,
        |script| {
            sent(script);

            refuse_versions(script, Vec::new());

            assert_eq!(sent(script).1, 0);
        },
    );
}

/// A peer that closed the connection at our highest version: version 0 tells neither features nor who we are.
#[test]
fn begun_at_the_lowest_it_goes_on_with_what_is_offered() {
    opened(
        Opening::Lowest,
        || None,
        |script| {
            assert_eq!((sent(script).1, script.machine().asked_version()), (0, Some(0)));

            answer_versions(script, 0);
            assert_eq!(sent(script).1, 4, "what the answer offers");

            answer_versions(script, 4);
            assert!(matches!(script.actions()[..], [Action::Finish { .. }]));
        },
    );
}

/// It offers a version, and refuses it: what it answered to is what it takes, however it is begun with.
#[test]
fn what_is_offered_and_refused_is_not_asked_again() {
    for opening in [Opening::Lowest, Opening::Known(0)] {
        opened(
            opening,
            || None,
            |script| {
                assert_eq!(sent(script).1, 0);
                answer_versions(script, 0);
                assert_eq!(sent(script).1, 4);

                refuse_versions(script, Vec::new());
                assert_eq!(sent(script).1, 0);
                answer_versions(script, 0);

                assert!(matches!(script.actions()[..], [Action::Finish { .. }]), "{opening:?}");
                assert_eq!(script.machine().taken_version(), Some(0));
            },
        );
    }
}

#[test]
fn begun_at_the_lowest_alone_it_stays_there() {
    opened(
        Opening::LowestAlone,
        || None,
        |script| {
            assert_eq!(sent(script).1, 0);

            answer_versions(script, 0);

            assert!(matches!(script.actions()[..], [Action::Finish { .. }]));
        },
    );
}

/// What the address took last: an upgrade shows in the answer, a downgrade in the refusal.
#[test]
fn begun_at_a_version_that_is_known_it_follows_the_broker() {
    opened(
        Opening::Known(3),
        || None,
        |script| {
            assert_eq!(sent(script).1, 3);
            answer_versions(script, 3);
            assert_eq!((sent(script).1, script.machine().taken_version()), (4, None), "what the answer offers");

            answer_versions(script, 4);
            assert!(matches!(script.actions()[..], [Action::Finish { .. }]));
            assert_eq!(script.machine().taken_version(), Some(4));
        },
    );
    opened(
        Opening::Known(4),
        || None,
        |script| {
            assert_eq!(sent(script).1, 4);
            refuse_versions(script, vec![api(ApiKey::ApiVersions, 0, 2)]);
            assert_eq!(sent(script).1, 2);

            answer_versions(script, 2);
            assert!(matches!(script.actions()[..], [Action::Finish { .. }]), "it has refused what it offers");
            assert_eq!(script.machine().taken_version(), Some(2));
        },
    );
}

/// AV-03.
#[test]
fn a_refusal_that_names_what_it_refuses_is_no_loop() {
    handshake(
        || None,
        |script| {
            sent(script);

            refuse_versions(script, vec![api(ApiKey::ApiVersions, 0, MAX)]);

            let error = failure(script);
            assert!(
                matches!(error, KrafkaError::Protocol { kind: ProtocolErrorKind::UnsupportedVersion, .. }),
                "{error:?}"
            );
        },
    );
}

/// AV-03.
#[test]
fn version_zero_refused_is_the_end() {
    handshake(
        || None,
        |script| {
            refuse_versions(script, Vec::new());
            refuse_versions(script, Vec::new());

            assert!(failure(script).to_string().contains("refuses version 0"));
        },
    );
}

/// The broker's code that a handshake failed with which may succeed the next time.
fn passing(script: &mut Test) -> ErrorCode {
    let error = failure(script);
    assert!(matches!(error, KrafkaError::Network(_)) && error.is_retriable(), "{error:?}");
    match error.source().and_then(|source| source.downcast_ref()) {
        Some(KrafkaError::Broker { code, .. }) if error.to_string().contains(&code.to_string()) => *code,
        other => panic!("{error}: {other:?}"),
    }
}

/// AV-04: such as a broker in trouble; another attempt may find it well.
#[test]
fn another_code_is_passed_on() {
    for code in [ErrorCode::INVALID_REQUEST, ErrorCode::UNKNOWN_SERVER_ERROR, ErrorCode(9_999)] {
        handshake(
            || None,
            |script| {
                answer(script, ApiKey::ApiVersions, MAX, &advertised(code, Vec::new()));

                assert_eq!(passing(script), code);
            },
        );
    }
}

/// Nor has a broker in trouble said anything of the mechanism, or of the credentials.
#[test]
fn a_broker_in_trouble_refuses_no_login() {
    let code = ErrorCode::UNKNOWN_SERVER_ERROR;
    plain(|script| {
        answer_versions(script, MAX);
        let troubled = SaslHandshakeResponse { error_code: code.0, ..SaslHandshakeResponse::default() };
        answer(script, ApiKey::SaslHandshake, 1, &troubled);

        assert_eq!(passing(script), code);
    });
    plain(|script| {
        answer_versions(script, MAX);
        answer(script, ApiKey::SaslHandshake, 1, &SaslHandshakeResponse::default());
        let troubled = SaslAuthenticateResponse { error_code: code.0, ..SaslAuthenticateResponse::default() };
        answer(script, ApiKey::SaslAuthenticate, 2, &troubled);

        assert_eq!(passing(script), code);
    });
}

/// AV-13.
#[test]
fn ranges_that_make_no_sense_end_it() {
    handshake(
        || None,
        |script| {
            let ranges = vec![api(ApiKey::Metadata, 5, 4)];
            answer(script, ApiKey::ApiVersions, MAX, &advertised(ErrorCode::NONE, ranges));

            assert!(matches!(failure(script), KrafkaError::Protocol { kind: ProtocolErrorKind::Malformed, .. }));
        },
    );
}

#[test]
fn an_answer_that_does_not_decode_ends_it() {
    handshake(
        || None,
        |script| {
            script.input(Bytes::from_static(&[0, 0, 0, 0, 0, 0, 255]));

            assert!(matches!(failure(script), KrafkaError::Protocol { kind: ProtocolErrorKind::Malformed, .. }));
        },
    );
}

/// AU-01.
#[test]
fn plain_authenticates_after_the_versions() {
    plain(|script| {
        sent(script);

        answer_versions(script, MAX);
        let (AnyRequest::SaslHandshake(request), 1) = sent(script) else { panic!("no SaslHandshake v1") };
        assert_eq!(&*request.mechanism, "PLAIN");

        answer(script, ApiKey::SaslHandshake, 1, &SaslHandshakeResponse::default());
        let (AnyRequest::SaslAuthenticate(request), 2) = sent(script) else { panic!("no SaslAuthenticate v2") };
        assert_eq!(&*request.auth_bytes, b"\0alice\0hunter2");

        let accepted = SaslAuthenticateResponse { session_lifetime_ms: 60_000, ..SaslAuthenticateResponse::default() };
        answer(script, ApiKey::SaslAuthenticate, 2, &accepted);
        let actions = script.actions();
        let [Action::Finish { session: Some(session), .. }] = &actions[..] else { panic!("{actions:?}") };
        assert_eq!(*session, Duration::from_secs(60));
    });
}

/// AU-02.
#[test]
fn a_wrong_password_is_an_auth_error_without_the_password() {
    plain(|script| {
        answer_versions(script, MAX);
        answer(script, ApiKey::SaslHandshake, 1, &SaslHandshakeResponse::default());
        let refused = SaslAuthenticateResponse {
            error_code: ErrorCode::SASL_AUTHENTICATION_FAILED.0,
            error_message: Some(Str::from("no such user")),
            ..SaslAuthenticateResponse::default()
        };

        answer(script, ApiKey::SaslAuthenticate, 2, &refused);

        let error = failure(script);
        assert!(matches!(error, KrafkaError::Auth { .. }) && !error.is_retriable(), "{error:?}");
        let text = format!("{error} {error:?}");
        for word in ["PLAIN", "kafka:9092", "no such user", "SASL_AUTHENTICATION_FAILED"] {
            assert!(text.contains(word), "'{text}' lacks '{word}'");
        }
        assert!(!text.contains("hunter2"), "{text}");
    });
}

/// AU-03.
#[test]
fn a_mechanism_that_is_off_is_told_with_those_that_are_on() {
    plain(|script| {
        answer_versions(script, MAX);
        let refused = SaslHandshakeResponse {
            error_code: ErrorCode::UNSUPPORTED_SASL_MECHANISM.0,
            mechanisms: vec![Str::from("SCRAM-SHA-256"), Str::from("OAUTHBEARER")],
        };

        answer(script, ApiKey::SaslHandshake, 1, &refused);

        let text = failure(script).to_string();
        assert!(text.contains("SCRAM-SHA-256, OAUTHBEARER"), "{text}");
    });
}

/// A listener without SASL says so in its own way.
#[test]
fn a_listener_without_sasl_is_told() {
    plain(|script| {
        answer_versions(script, MAX);
        let refused =
            SaslHandshakeResponse { error_code: ErrorCode::ILLEGAL_SASL_STATE.0, ..SaslHandshakeResponse::default() };

        answer(script, ApiKey::SaslHandshake, 1, &refused);

        let text = failure(script).to_string();
        assert!(text.contains("a listener without SASL"), "{text}");
    });
}

/// AU-09: a broker that has let the client in once has SASL.
#[test]
fn a_refused_renewal_is_not_taken_for_a_listener_without_sasl() {
    let versions = || Versions::new(vec![(ApiKey::SaslHandshake as i16, 0, 1)]).expect("they are in order");
    let exchange = || Exchange::Plain(Plain::new("alice", "hunter2"));
    let again = |_| Handshake::again(Node::bootstrap(0, "kafka", 9092), "me".into(), exchange(), versions());
    Script::run(again, |script: &mut Test| {
        let refused =
            SaslHandshakeResponse { error_code: ErrorCode::ILLEGAL_SASL_STATE.0, ..SaslHandshakeResponse::default() };

        answer(script, ApiKey::SaslHandshake, 1, &refused);

        let text = failure(script).to_string();
        assert!(text.contains("no renewal of the session now"), "{text}");
    });
}

#[test]
fn debug_does_not_show_the_password() {
    plain(|script| assert!(!format!("{:?}", script.machine()).contains("hunter2")));
}

/// RB-05: KIP-1242.
#[test]
fn a_known_broker_is_asked_whether_it_is_the_one() {
    known_broker(|script| {
        assert_eq!(meant(script), (Some("cluster".into()), 3, 5));

        answer_versions(script, MAX);

        assert!(matches!(&script.actions()[..], [Action::Finish { .. }]));
    });
}

/// Before Kafka 4.4 there is no room for the question.
#[test]
fn an_older_broker_is_asked_without_it() {
    known_broker(|script| {
        sent(script);
        refuse_versions(script, vec![api(ApiKey::ApiVersions, 0, 4)]);

        assert_eq!(meant(script), (None, -1, 4));
    });
}

#[test]
fn a_bootstrap_server_is_not_asked_who_it_is() {
    let node = Node::bootstrap(0, "kafka", 9092);
    Script::run(
        |_| Handshake::new(node.clone(), "me".into(), None, Some("cluster".into()), Opening::Highest),
        |script: &mut Test| assert_eq!(meant(script), (None, -1, 5)),
    );
}

/// RB-05: the client must look for its brokers anew, and may then succeed.
#[test]
fn a_broker_that_is_somebody_else_is_told_apart() {
    known_broker(|script| {
        sent(script);
        answer(script, ApiKey::ApiVersions, MAX, &advertised(ErrorCode::REBOOTSTRAP_REQUIRED, Vec::new()));

        let Some(Action::Misrouted(error)) = script.actions().pop() else { panic!("it was not noticed") };
        assert!(error.is_retriable() && error.to_string().contains("broker 3 at kafka:9092"), "{error}");
    });
}
