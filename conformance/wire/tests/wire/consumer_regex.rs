//! Subscriptions by regular expression, which the coordinator resolves.

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest;
use krafka_protocol::{ErrorCode, Str};

use crate::consumer::{Consumer, WITH_REGEX};
use crate::target::run;

type Request = ConsumerGroupHeartbeatRequest;

/// FI-07e, GN-12.
#[test]
fn regular_expressions_are_resolved_by_the_coordinator() {
    run(async |target| {
        target.since(KafkaVersion::V4_0, "subscriptions by regular expression").await;
        let topic = target.topic(2).await;
        let other = target.topic(1).await;
        let mut member = Consumer::new(&target, &target.fresh("group"), &[]).await;
        let pattern = format!("{}|nothing-.*", topic.name);
        let request = Request {
            subscribed_topic_names: None,
            subscribed_topic_regex: Some(Str::from(pattern.clone())),
            ..member.full()
        };

        let joined = member.say(request).await;
        assert_eq!((joined.error_code, joined.member_epoch), (0, 1));
        assert_eq!(member.size(), 0, "the topics are looked for later");
        member.settle(2).await;
        assert_eq!(member.assigned.keys().copied().collect::<Vec<_>>(), [topic.id]);
        assert_eq!(member.describe().await.members[0].subscribed_topic_regex.as_deref(), Some(&*pattern));

        // Names come on top, and an empty expression ends the subscription by it.
        member.topics = vec![other.name.clone()];
        member.say(member.full()).await;
        member.settle(3).await;
        let request = Request { subscribed_topic_regex: Some(Str::default()), ..member.full() };
        member.say(request).await;
        member.settle(1).await;
        assert_eq!(member.describe().await.members[0].subscribed_topic_regex.as_deref(), Some(""));
    });
}

#[test]
fn expressions_that_are_none_of_re2_are_refused() {
    run(async |target| {
        target.since(KafkaVersion::V4_0, "subscriptions by regular expression").await;
        let mut member = Consumer::new(&target, &target.fresh("group"), &[]).await;
        let mut refused = Vec::new();
        let table = [
            "[",
            "(",
            ")",
            "*",
            "a**",
            "a{2}{3}",
            "a{1001}",
            "a{3,2}",
            r"\1",
            "(?=a)",
            "(?!a)",
            "(?x)a",
            r"\C",
            r"a\",
            "(?P=name)",
            "[z-a]",
            "[a--z]",
            r"\pX",
            "[[:nope:]]",
            r"\y",
        ];
        for pattern in table {
            let request = Request {
                subscribed_topic_names: None,
                subscribed_topic_regex: Some(Str::from(pattern)),
                ..member.full()
            };
            let answer = member.wire.call(request, WITH_REGEX).await;
            if ErrorCode(answer.error_code) == ErrorCode::INVALID_REGULAR_EXPRESSION {
                refused.push(pattern);
            }
        }
        assert_eq!(refused, table);
    });
}

#[test]
fn expressions_of_re2_are_taken() {
    run(async |target| {
        target.since(KafkaVersion::V4_0, "subscriptions by regular expression").await;
        for pattern in [
            "foo*",
            "a|b",
            r"\Qa.b\E.*",
            "[[a]",
            "[a&&b]",
            "[+--]",
            "a{,2}",
            "a{",
            "a{2}",
            "a{2,}",
            "(?i)ABC",
            r"\141",
            "[[:alpha:]_]+",
            r"\<a",
            "a??b",
            "[]a]",
            "(?P<name>a)",
            r"\pL",
            r"\x41",
            r"\b",
            "^a$",
            "()",
        ] {
            let mut member = Consumer::new(&target, &target.fresh("group"), &[]).await;
            let request = Request {
                subscribed_topic_names: None,
                subscribed_topic_regex: Some(Str::from(pattern)),
                ..member.full()
            };
            let answer = member.wire.call(request, WITH_REGEX).await;
            assert_eq!((answer.error_code, answer.error_message), (0, None), "{pattern}");
        }
    });
}
