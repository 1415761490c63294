//! Subscriptions by regular expression, which the coordinator resolves.

use std::time::Duration;

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest;
use krafka_protocol::api::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use krafka_protocol::{ErrorCode, Str};

use crate::acls::{GROUP, READ, TOPIC, allow, create};
use crate::consumer::{Consumer, WITH_REGEX};
use crate::secured;
use crate::target::{Target, run};

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

/// An expression stands for what its member may see.
#[test]
fn expression_finds_no_topic_that_the_member_may_not_describe() {
    secured::run(async |secured| {
        let target = &secured.target;
        target.since(KafkaVersion::V4_0, "subscriptions by regular expression").await;
        let (seen, hidden) = (target.topic(1).await, target.topic(1).await);
        let group = target.fresh("group");
        let rules = vec![allow(GROUP, &group, READ), allow(TOPIC, &seen.name, READ)];
        create(&mut secured.login("admin").await, rules).await;
        let mut member = Consumer::new(target, &group, &[]).await;
        member.wire = secured.login("alice").await;
        let pattern = Str::from(format!("{}|{}", seen.name, hidden.name));
        let by_pattern = |member: &Consumer| Request {
            subscribed_topic_names: None,
            subscribed_topic_regex: Some(pattern.clone()),
            ..member.full()
        };

        member.say(by_pattern(&member)).await;
        member.settle(1).await;
        assert_eq!(member.assigned.keys().copied().collect::<Vec<_>>(), [seen.id]);
        member.leave().await;

        // It is who brings the expression that counts.
        let mut other = Consumer::new(target, &target.fresh("group"), &[]).await;
        other.wire = secured.login("admin").await;
        other.say(by_pattern(&other)).await;
        other.settle(2).await;
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
            r"\Efoo",
            r"\p{Foo}",
            r"\p{L",
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
            r"\p{L}+",
            r"\pZ\p{Greek}",
            r"\P{^L}",
            r"[\p{Lu}\P{N}]",
            r"\x41",
            r"\x{1F600}",
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

/// FI-07e. A group begins with nobody assigned anything, which is no assignment that the next one would have to wait
/// behind.
#[test]
fn topics_of_an_expression_are_assigned_as_soon_as_they_are_found() {
    run(async |target| {
        target.since(KafkaVersion::V4_3, "consumer.assignment.interval.ms").await;
        let (group, topic) = (target.fresh("group"), target.topic(2).await);
        let mut member = Consumer::new(&target, &group, &[]).await;
        assign_every_15_seconds(&target, &group).await;
        let expression = Some(topic.name.clone());
        let request = Request { subscribed_topic_names: None, subscribed_topic_regex: expression, ..member.full() };

        let joined = member.say(request).await;
        assert_eq!((joined.error_code, joined.member_epoch, member.size()), (0, 1, 0));
        member.settle(2).await;
        assert_eq!(member.epoch, 2);
    });
}

/// So that a test sees which assignment had to wait for another.
async fn assign_every_15_seconds(target: &Target, group: &Str) {
    let config = AlterableConfig {
        name: "consumer.assignment.interval.ms".into(),
        config_operation: 0,
        value: Some("15000".into()),
    };
    let resource = AlterConfigsResource { resource_type: 32, resource_name: group.clone(), configs: vec![config] };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
    let answer = target.connect().await.call(request, 1).await;
    assert_eq!(ErrorCode(answer.responses[0].error_code), ErrorCode::NONE);
    // Each node learns of it a little later.
    tokio::time::sleep(Duration::from_millis(500)).await;
}
