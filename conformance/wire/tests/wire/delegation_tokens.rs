//! Delegation tokens: made, renewed, ended, seen, and what a login by one may do.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use krafka_fake_broker::SecurityProtocol::{Plaintext, SaslPlaintext, Ssl};
use krafka_protocol::api::create_delegation_token::{
    CreatableRenewers, CreateDelegationTokenRequest, CreateDelegationTokenResponse,
};
use krafka_protocol::api::describe_delegation_token::{
    DescribeDelegationTokenOwner, DescribeDelegationTokenRequest, DescribedDelegationToken,
};
use krafka_protocol::api::expire_delegation_token::ExpireDelegationTokenRequest;
use krafka_protocol::api::metadata::MetadataRequest;
use krafka_protocol::api::renew_delegation_token::RenewDelegationTokenRequest;
use krafka_protocol::{Bytes, ErrorCode, Str};

use crate::logins::{Hash, scram};
use crate::secured::run;
use crate::target::Wire;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn for_oneself() -> CreateDelegationTokenRequest {
    CreateDelegationTokenRequest {
        owner_principal_type: None,
        owner_principal_name: None,
        renewers: vec![],
        max_lifetime_ms: -1,
    }
}

async fn make(wire: &mut Wire) -> CreateDelegationTokenResponse {
    let made = wire.call(for_oneself(), 3).await;
    assert_eq!(made.error_code, 0);
    made
}

/// The token as it is told when everybody knows of it, or nothing once nobody does.
async fn seen(wire: &mut Wire, owners: Option<&[&str]>, id: &Str) -> Option<DescribedDelegationToken> {
    let owner =
        |name: &&str| DescribeDelegationTokenOwner { principal_type: "User".into(), principal_name: (*name).into() };
    let owners = owners.map(|names| names.iter().map(owner).collect());
    let answer = wire.call(DescribeDelegationTokenRequest { owners }, 3).await;
    assert_eq!(answer.error_code, 0);
    answer.tokens.into_iter().find(|token| token.token_id == *id)
}

async fn known(wire: &mut Wire, id: &Str) {
    while seen(wire, None, id).await.is_none() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[test]
fn token_lets_in_as_its_owner() {
    run(async |secured| {
        let mut alice = secured.login("alice").await;
        let made = make(&mut alice).await;
        known(&mut alice, &made.token_id).await;
        assert_eq!((&*made.principal_type, &*made.principal_name), ("User", "alice"));
        assert_eq!(&*made.token_requester_principal_name, "alice");
        assert_eq!(made.expiry_timestamp_ms - made.issue_timestamp_ms, DAY_MS);
        assert_eq!(made.max_timestamp_ms - made.issue_timestamp_ms, 7 * DAY_MS);
        assert_eq!(made.hmac.len(), 64);
        let password = STANDARD.encode(&made.hmac);

        for hash in [Hash::Sha256, Hash::Sha512] {
            let mut wire = secured.connect(SaslPlaintext).await;
            let answer = scram(&mut wire, hash, (&made.token_id, &password), ",tokenauth=true").await;

            assert_eq!(answer.error_code, 0);
            let lifetime = answer.session_lifetime_ms;
            assert!((DAY_MS - 20_000..=DAY_MS).contains(&lifetime), "{lifetime}");
            let metadata = MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() };
            assert!(!wire.call(metadata, 12).await.brokers.is_empty());
            let again = wire.call(for_oneself(), 3).await;
            assert_eq!(ErrorCode(again.error_code), ErrorCode::DELEGATION_TOKEN_REQUEST_NOT_ALLOWED);
            let renew = RenewDelegationTokenRequest { hmac: made.hmac.clone(), renew_period_ms: 1 };
            let told = ErrorCode(wire.call(renew, 2).await.error_code);
            assert_eq!(told, ErrorCode::DELEGATION_TOKEN_REQUEST_NOT_ALLOWED);
        }

        let mut wire = secured.connect(SaslPlaintext).await;
        let answer = scram(&mut wire, Hash::Sha256, (&made.token_id, &password), "").await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::SASL_AUTHENTICATION_FAILED, "a token is no user");
    });
}

#[test]
fn tokens_are_for_those_who_have_shown_who_they_are() {
    run(async |secured| {
        let not_allowed = ErrorCode::DELEGATION_TOKEN_REQUEST_NOT_ALLOWED;
        let mut plain = secured.connect(Plaintext).await;
        let mut one_way = secured.connect_tls(Ssl, false).await;
        for wire in [&mut plain, &mut one_way] {
            let made = wire.call(for_oneself(), 3).await;
            assert_eq!(ErrorCode(made.error_code), not_allowed);
            assert_eq!((&*made.principal_name, made.issue_timestamp_ms, made.hmac.len()), ("ANONYMOUS", -1, 0));
            let renewed = wire.call(RenewDelegationTokenRequest { hmac: Bytes::new(), renew_period_ms: 1 }, 2).await;
            assert_eq!((ErrorCode(renewed.error_code), renewed.expiry_timestamp_ms), (not_allowed, -1));
            let request = ExpireDelegationTokenRequest { hmac: Bytes::new(), expiry_time_period_ms: 1 };
            let expired = wire.call(request, 2).await;
            assert_eq!((ErrorCode(expired.error_code), expired.expiry_timestamp_ms), (not_allowed, -1));
            let described = wire.call(DescribeDelegationTokenRequest { owners: None }, 3).await;
            assert_eq!(ErrorCode(described.error_code), not_allowed);
        }

        let mut both_ways = secured.connect_tls(Ssl, true).await;
        let made = make(&mut both_ways).await;
        assert_eq!(&*made.principal_name, "CN=client");
    });
}

#[test]
fn tokens_live_as_long_as_their_owner_says() {
    run(async |secured| {
        let mut alice = secured.login("alice").await;
        let request = CreateDelegationTokenRequest { max_lifetime_ms: 3_600_000, ..for_oneself() };
        let made = alice.call(request, 3).await;
        known(&mut alice, &made.token_id).await;
        assert_eq!(made.max_timestamp_ms - made.issue_timestamp_ms, 3_600_000);
        assert_eq!(made.expiry_timestamp_ms, made.max_timestamp_ms);
        let renew = |renew_period_ms| RenewDelegationTokenRequest { hmac: made.hmac.clone(), renew_period_ms };
        let expire =
            |expiry_time_period_ms| ExpireDelegationTokenRequest { hmac: made.hmac.clone(), expiry_time_period_ms };

        let soon = alice.call(renew(60_000), 2).await;
        assert_eq!(soon.error_code, 0);
        let left = soon.expiry_timestamp_ms - made.issue_timestamp_ms;
        assert!((60_000..80_000).contains(&left), "{left}");
        assert_eq!(alice.call(renew(-1), 2).await.expiry_timestamp_ms, made.max_timestamp_ms);
        assert_eq!(alice.call(renew(DAY_MS), 2).await.expiry_timestamp_ms, made.max_timestamp_ms);
        let sooner = alice.call(expire(30_000), 2).await;
        assert_eq!(sooner.error_code, 0);
        assert!(sooner.expiry_timestamp_ms < soon.expiry_timestamp_ms);

        let mut bob = secured.login("bob").await;
        let mismatch = ErrorCode::DELEGATION_TOKEN_OWNER_MISMATCH;
        assert_eq!(ErrorCode(bob.call(renew(1), 2).await.error_code), mismatch);
        assert_eq!(ErrorCode(bob.call(expire(1), 2).await.error_code), mismatch);
        assert_eq!(ErrorCode(bob.call(expire(-1), 2).await.error_code), mismatch);

        assert_eq!(alice.call(expire(-1), 2).await.error_code, 0);
        while seen(&mut alice, None, &made.token_id).await.is_some() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        let gone = ErrorCode::DELEGATION_TOKEN_NOT_FOUND;
        let renewed = alice.call(renew(1), 2).await;
        assert_eq!(ErrorCode(renewed.error_code), gone);
        assert_eq!(renewed.expiry_timestamp_ms, 0);
        let expired = alice.call(expire(1), 2).await;
        assert_eq!((ErrorCode(expired.error_code), expired.expiry_timestamp_ms), (gone, 0));
    });
}

#[test]
fn zero_stands_for_the_default() {
    run(async |secured| {
        let mut alice = secured.login("alice").await;
        let made = alice.call(CreateDelegationTokenRequest { max_lifetime_ms: 0, ..for_oneself() }, 3).await;
        known(&mut alice, &made.token_id).await;
        assert_eq!(made.max_timestamp_ms - made.issue_timestamp_ms, 7 * DAY_MS);

        let renewed = alice.call(RenewDelegationTokenRequest { hmac: made.hmac, renew_period_ms: 0 }, 2).await;

        assert_eq!(renewed.error_code, 0);
        assert!(renewed.expiry_timestamp_ms >= made.expiry_timestamp_ms);
    });
}

#[test]
fn tokens_are_seen_by_those_whom_they_concern() {
    run(async |secured| {
        let mut alice = secured.login("alice").await;
        let bob = CreatableRenewers { principal_type: "User".into(), principal_name: "bob".into() };
        let request = CreateDelegationTokenRequest { renewers: vec![bob.clone()], ..for_oneself() };
        let shared = alice.call(request, 3).await;
        let own = make(&mut alice).await;
        known(&mut alice, &own.token_id).await;
        let (shared_id, own_id) = (shared.token_id, own.token_id);
        let mut bob_wire = secured.login("bob").await;

        let told = seen(&mut bob_wire, None, &shared_id).await.expect("bob may renew it");
        assert_eq!(told.renewers.len(), 1);
        assert_eq!((&*told.principal_name, told.hmac), ("alice", shared.hmac));
        assert_eq!(seen(&mut bob_wire, None, &own_id).await, None);
        assert!(seen(&mut bob_wire, Some(&["alice"]), &shared_id).await.is_some());
        assert_eq!(seen(&mut bob_wire, Some(&["carol"]), &shared_id).await, None);
        assert_eq!(seen(&mut bob_wire, Some(&[]), &shared_id).await, None);
        let mut admin = secured.login("admin").await;
        assert!(seen(&mut admin, None, &own_id).await.is_some(), "who may describe it sees it");

        let for_bob = CreateDelegationTokenRequest {
            owner_principal_type: Some("User".into()),
            owner_principal_name: Some("bob".into()),
            ..for_oneself()
        };
        let told = alice.call(for_bob.clone(), 3).await;
        assert_eq!(ErrorCode(told.error_code), ErrorCode::DELEGATION_TOKEN_AUTHORIZATION_FAILED);
        let told = admin.call(for_bob, 3).await;
        assert_eq!((told.error_code, &*told.principal_name), (0, "bob"));
        assert_eq!(&*told.token_requester_principal_name, "admin");
        let group = CreatableRenewers { principal_type: "Group".into(), ..bob };
        let told = alice.call(CreateDelegationTokenRequest { renewers: vec![group], ..for_oneself() }, 3).await;
        assert_eq!(ErrorCode(told.error_code), ErrorCode::INVALID_PRINCIPAL_TYPE);
    });
}

/// Each version that is advertised answers: the requester is told of from version 3 on.
#[test]
fn tokens_are_made_and_described_in_every_version() {
    run(async |secured| {
        let mut alice = secured.login("alice").await;
        let plain = CreateDelegationTokenRequest { max_lifetime_ms: -1, ..CreateDelegationTokenRequest::default() };
        for version in 1..=3 {
            let made = alice.call(plain.clone(), version).await;
            assert_eq!((made.error_code, &*made.principal_name), (0, "alice"), "version {version}");
            let requester = if version >= 3 { ("User", "alice") } else { ("", "") };
            let told = (&*made.token_requester_principal_type, &*made.token_requester_principal_name);
            assert_eq!(told, requester, "version {version}");

            known(&mut alice, &made.token_id).await;
            let answer = alice.call(DescribeDelegationTokenRequest { owners: None }, version).await;
            let told = answer.tokens.iter().find(|token| token.token_id == made.token_id).expect("it is known");
            let told = (&*told.token_requester_principal_type, &*told.token_requester_principal_name);
            assert_eq!((answer.error_code, told), (0, requester), "version {version}");
        }
        // Who has no name is refused, in words that each version has.
        let mut nobody = secured.connect(Plaintext).await;
        for version in 1..=3 {
            let told = nobody.call(plain.clone(), version).await.error_code;
            assert_eq!(ErrorCode(told), ErrorCode::DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, "version {version}");
        }
    });
}
