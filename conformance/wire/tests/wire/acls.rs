//! Access rules as an operator makes, finds and removes them.

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::create_acls::{AclCreation, CreateAclsRequest};
use krafka_protocol::api::delete_acls::{DeleteAclsFilter, DeleteAclsRequest};
use krafka_protocol::api::describe_acls::DescribeAclsRequest;
use krafka_protocol::{ErrorCode, Str};

use crate::secured::run;
use crate::target::Wire;

const ANY: i8 = 1;
const MATCH: i8 = 2;
pub(crate) const LITERAL: i8 = 3;
pub(crate) const PREFIXED: i8 = 4;
pub(crate) const TOPIC: i8 = 2;
pub(crate) const GROUP: i8 = 3;
pub(crate) const CLUSTER: i8 = 4;
pub(crate) const TRANSACTIONAL_ID: i8 = 5;
pub(crate) const ALL: i8 = 2;
pub(crate) const READ: i8 = 3;
pub(crate) const WRITE: i8 = 4;
pub(crate) const CREATE: i8 = 5;
pub(crate) const DELETE: i8 = 6;
pub(crate) const ALTER: i8 = 7;
pub(crate) const DESCRIBE: i8 = 8;
pub(crate) const DENY: i8 = 2;
pub(crate) const ALLOW: i8 = 3;

/// A rule that allows alice something.
pub(crate) fn allow(resource_type: i8, name: &Str, operation: i8) -> AclCreation {
    AclCreation {
        resource_type,
        resource_name: name.clone(),
        resource_pattern_type: LITERAL,
        principal: Str::from_static("User:alice"),
        host: Str::from_static("*"),
        operation,
        permission_type: ALLOW,
    }
}

/// Adds rules, and waits until the broker goes by them.
pub(crate) async fn create(wire: &mut Wire, creations: Vec<AclCreation>) {
    let asked = creations.clone();
    let results = wire.call(CreateAclsRequest { creations }, 3).await.results;
    assert!(results.iter().all(|result| result.error_code == 0), "{results:?}");
    for creation in asked {
        let filter = DescribeAclsRequest {
            resource_type_filter: creation.resource_type,
            resource_name_filter: Some(creation.resource_name),
            pattern_type_filter: creation.resource_pattern_type,
            principal_filter: Some(creation.principal),
            host_filter: Some(creation.host),
            operation: creation.operation,
            permission_type: creation.permission_type,
        };
        while wire.call(filter.clone(), 3).await.resources.is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
}

/// Finds rules about topics.
fn about(name: Option<&Str>, pattern_type: i8) -> DescribeAclsRequest {
    DescribeAclsRequest {
        resource_type_filter: TOPIC,
        resource_name_filter: name.cloned(),
        pattern_type_filter: pattern_type,
        principal_filter: None,
        host_filter: None,
        operation: ANY,
        permission_type: ANY,
    }
}

/// Removes what that finds.
fn without(filter: DescribeAclsRequest) -> DeleteAclsFilter {
    DeleteAclsFilter {
        resource_type_filter: filter.resource_type_filter,
        resource_name_filter: filter.resource_name_filter,
        pattern_type_filter: filter.pattern_type_filter,
        principal_filter: filter.principal_filter,
        host_filter: filter.host_filter,
        operation: filter.operation,
        permission_type: filter.permission_type,
    }
}

/// What a filter finds: pattern type, name, operation and permission of each rule.
async fn found(wire: &mut Wire, filter: DescribeAclsRequest) -> Vec<(i8, Str, i8, i8)> {
    let answer = wire.call(filter, 3).await;
    assert_eq!((answer.error_code, answer.error_message.as_deref()), (0, Some("")));
    let mut found: Vec<_> = answer
        .resources
        .iter()
        .flat_map(|resource| {
            resource.acls.iter().map(|acl| {
                assert_eq!((&*acl.principal, &*acl.host), ("User:alice", "*"));
                (resource.pattern_type, resource.resource_name.clone(), acl.operation, acl.permission_type)
            })
        })
        .collect();
    found.sort();
    found
}

#[test]
fn filters_find_what_they_name() {
    run(async |secured| {
        let mut admin = secured.login("admin").await;
        let name = secured.target.fresh("acl");
        let longer = Str::from(format!("{name}-longer"));
        let rules = vec![
            allow(TOPIC, &name, READ),
            AclCreation { permission_type: DENY, ..allow(TOPIC, &name, WRITE) },
            AclCreation { resource_pattern_type: PREFIXED, ..allow(TOPIC, &name, ALL) },
            allow(TOPIC, &longer, READ),
            allow(GROUP, &name, READ),
        ];
        create(&mut admin, rules.clone()).await;
        create(&mut admin, vec![rules[0].clone()]).await;

        let literal = [(LITERAL, name.clone(), READ, ALLOW), (LITERAL, name.clone(), WRITE, DENY)];
        let prefixed = [(PREFIXED, name.clone(), ALL, ALLOW)];
        let both = [&literal[..], &prefixed[..]].concat();
        let covering = [(LITERAL, longer.clone(), READ, ALLOW), prefixed[0].clone()];
        assert_eq!(found(&mut admin, about(Some(&name), LITERAL)).await, literal);
        assert_eq!(found(&mut admin, about(Some(&name), PREFIXED)).await, prefixed);
        assert_eq!(found(&mut admin, about(Some(&name), ANY)).await, both);
        assert_eq!(found(&mut admin, about(Some(&longer), MATCH)).await, covering);
        let denied = DescribeAclsRequest { permission_type: DENY, ..about(Some(&name), ANY) };
        assert_eq!(found(&mut admin, denied).await, literal[1..]);
        let of_everyone = DescribeAclsRequest { principal_filter: Some("User:*".into()), ..about(Some(&name), ANY) };
        assert!(found(&mut admin, of_everyone).await.is_empty());
    });
}

#[test]
fn removed_rules_are_told() {
    run(async |secured| {
        let mut admin = secured.login("admin").await;
        let (name, other) = (secured.target.fresh("acl"), secured.target.fresh("acl"));
        create(&mut admin, vec![allow(TOPIC, &name, READ), allow(TOPIC, &name, WRITE), allow(TOPIC, &other, READ)])
            .await;

        let filters = vec![without(about(Some(&name), ANY)), without(about(Some(&secured.target.fresh("acl")), ANY))];
        let results = admin.call(DeleteAclsRequest { filters }, 3).await.filter_results;

        assert_eq!(results.len(), 2);
        assert_eq!((results[0].error_code, results[0].error_message.as_deref()), (0, None));
        let mut removed: Vec<_> =
            results[0].matching_acls.iter().map(|acl| (acl.error_code, acl.operation, &acl.error_message)).collect();
        removed.sort();
        assert_eq!(removed, [(0, READ, &None), (0, WRITE, &None)]);
        assert!(results[1].matching_acls.is_empty() && results[1].error_code == 0);
        while !found(&mut admin, about(Some(&name), ANY)).await.is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert_eq!(found(&mut admin, about(Some(&other), ANY)).await.len(), 1);
    });
}

/// FI-12c.
#[test]
fn rules_that_make_no_sense_are_refused_one_by_one() {
    run(async |secured| {
        let mut admin = secured.login("admin").await;
        let name = secured.target.fresh("acl");
        let good = allow(TOPIC, &name, READ);
        let no_colon = "(no colon is present separating the principal type from the principal name)";
        let alice = format!("Could not parse principal from `alice` {no_colon}");
        let nobody = format!("Could not parse principal from `` {no_colon}");
        let table = [
            (AclCreation { resource_name: Str::default(), ..good.clone() }, "Invalid empty resource name"),
            (
                AclCreation { resource_type: CLUSTER, ..good.clone() },
                "The only valid name for the CLUSTER resource is kafka-cluster",
            ),
            (AclCreation { resource_type: 99, ..good.clone() }, "Invalid resourceType UNKNOWN"),
            (AclCreation { resource_pattern_type: 99, ..good.clone() }, "Invalid patternType UNKNOWN"),
            (AclCreation { operation: 99, ..good.clone() }, "Invalid operation UNKNOWN"),
            (AclCreation { permission_type: 99, ..good.clone() }, "Invalid permissionType UNKNOWN"),
            (AclCreation { principal: "alice".into(), ..good.clone() }, &alice),
            (AclCreation { principal: Str::default(), ..good.clone() }, &nobody),
        ];

        for (creation, words) in table {
            let sensible = AclCreation { resource_type: GROUP, operation: CREATE, ..good.clone() };
            let creations = vec![creation, AclCreation { principal: ":".into(), ..good.clone() }, sensible];

            let results = admin.call(CreateAclsRequest { creations }, 3).await.results;

            let told: Vec<_> = results.iter().map(|r| (ErrorCode(r.error_code), r.error_message.as_deref())).collect();
            let fine = (ErrorCode::NONE, Some(""));
            assert_eq!(told, [(ErrorCode::INVALID_REQUEST, Some(words)), fine, fine]);
        }
    });
}

#[test]
fn hosts_may_be_ranges() {
    run(async |secured| {
        secured.target.since(KafkaVersion::V4_4, "ranges of hosts (KIP-1276)").await;
        let mut admin = secured.login("admin").await;
        let good = allow(TOPIC, &secured.target.fresh("acl"), READ);
        for host in ["127.0.0.0/8", "::1/64", "127.0.0.1", "localhost", "*"] {
            let creations = vec![AclCreation { host: host.into(), ..good.clone() }];
            assert_eq!(admin.call(CreateAclsRequest { creations }, 3).await.results[0].error_code, 0, "{host}");
        }
        for host in ["127.0.0.0/33", "127.0.0/8", "*/8", "::/129", "g::/64", "127.0.0.0/"] {
            let creations = vec![AclCreation { host: host.into(), ..good.clone() }];
            let result = admin.call(CreateAclsRequest { creations }, 3).await.results.remove(0);
            assert_eq!(ErrorCode(result.error_code), ErrorCode::INVALID_REQUEST);
            // Java's library has other words for the rest.
            let beginning = format!("Invalid CIDR notation '{host}': ");
            assert!(result.error_message.is_some_and(|message| message.starts_with(&beginning)), "{host}");
        }
        let creations = vec![AclCreation { host: Str::default(), ..good }];
        let result = admin.call(CreateAclsRequest { creations }, 3).await.results.remove(0);
        assert_eq!(ErrorCode(result.error_code), ErrorCode::INVALID_REQUEST);
        assert_eq!(result.error_message.as_deref(), Some("Host pattern cannot be null or empty"));
    });
}

/// FI-12c.
#[test]
fn rules_of_any_kind_are_none_at_all() {
    run(async |secured| {
        let mut admin = secured.login("admin").await;
        let name = secured.target.fresh("acl");
        let good = allow(TOPIC, &name, READ);
        for creation in [
            AclCreation { resource_type: ANY, ..good.clone() },
            AclCreation { resource_pattern_type: MATCH, ..good.clone() },
            AclCreation { resource_pattern_type: ANY, ..good.clone() },
            AclCreation { operation: ANY, ..good.clone() },
            AclCreation { permission_type: ANY, ..good.clone() },
        ] {
            let creations = vec![good.clone(), creation];

            let results = admin.call(CreateAclsRequest { creations }, 3).await.results;

            assert_eq!(results.len(), 2);
            for result in results {
                let told = (ErrorCode(result.error_code), result.error_message);
                assert_eq!(told, (ErrorCode::UNKNOWN_SERVER_ERROR, None));
            }
        }
        assert!(found(&mut admin, about(Some(&name), ANY)).await.is_empty());
    });
}

#[test]
fn zeros_are_not_read() {
    run(async |secured| {
        let name = secured.target.fresh("acl");
        let mut admin = secured.login("admin").await;
        let creations = vec![AclCreation { operation: 0, ..allow(TOPIC, &name, READ) }];
        admin.send(CreateAclsRequest { creations }, 3).await;
        assert!(admin.is_closed().await);

        let mut admin = secured.login("admin").await;
        admin.send(DescribeAclsRequest { permission_type: 0, ..about(Some(&name), ANY) }, 3).await;
        assert!(admin.is_closed().await);

        let mut admin = secured.login("admin").await;
        admin.send(DeleteAclsRequest { filters: vec![without(about(Some(&name), 0))] }, 3).await;
        assert!(admin.is_closed().await);
    });
}

#[test]
fn filters_of_unknown_numbers_find_nothing_and_remove_nothing() {
    run(async |secured| {
        let mut admin = secured.login("admin").await;
        let name = secured.target.fresh("acl");
        create(&mut admin, vec![allow(TOPIC, &name, READ)]).await;
        let all = about(Some(&name), ANY);
        for (filter, words) in [
            (DescribeAclsRequest { resource_type_filter: 99, ..all.clone() }, "Unknown patternFilter."),
            (DescribeAclsRequest { pattern_type_filter: 99, ..all.clone() }, "Unknown patternFilter."),
            (DescribeAclsRequest { operation: 99, ..all.clone() }, "Unknown entryFilter."),
            (DescribeAclsRequest { permission_type: 99, ..all.clone() }, "Unknown entryFilter."),
        ] {
            assert!(found(&mut admin, filter.clone()).await.is_empty());
            let mut removed = admin.call(DeleteAclsRequest { filters: vec![without(filter)] }, 3).await.filter_results;

            let removed = removed.remove(0);
            assert_eq!(ErrorCode(removed.error_code), ErrorCode::INVALID_REQUEST);
            assert_eq!((removed.error_message.as_deref(), removed.matching_acls.len()), (Some(words), 0));
        }
        assert_eq!(found(&mut admin, all).await.len(), 1);
    });
}

#[test]
fn rules_are_made_by_who_may_alter_the_cluster() {
    run(async |secured| {
        let mut alice = secured.login("alice").await;
        let name = secured.target.fresh("acl");
        let refused = ErrorCode::CLUSTER_AUTHORIZATION_FAILED;

        let created = alice.call(CreateAclsRequest { creations: vec![allow(TOPIC, &name, READ)] }, 3).await;
        let described = alice.call(about(Some(&name), ANY), 3).await;
        let removed = alice.call(DeleteAclsRequest { filters: vec![without(about(Some(&name), ANY))] }, 3).await;

        assert_eq!(ErrorCode(created.results[0].error_code), refused);
        assert_eq!((ErrorCode(described.error_code), described.resources.len()), (refused, 0));
        assert_eq!(ErrorCode(removed.filter_results[0].error_code), refused);
    });
}
