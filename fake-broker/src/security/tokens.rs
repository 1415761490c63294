//! Delegation tokens (KIP-48): made by somebody who has logged in, so that others can log in as them.
//!
//! A token ends unless it is renewed, and at last ends even so. One that has ended is forgotten within the hour, as
//! Kafka looks for them once an hour; until then it lets in, but a login by it holds for no time at all.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use krafka_protocol::{Bytes, ErrorCode, Str};

use super::principal::Principal;
use super::sasl::scram::{ScramCredential, ScramMechanism, hmac_sha512};

/// Kafka's default of `delegation.token.expiry.check.interval.ms`.
const SWEEP_MS: i64 = 60 * 60 * 1000;
/// Kafka's default of `delegation.token.max.lifetime.ms`.
const MAX_LIFETIME_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// Kafka's default of `delegation.token.expiry.time.ms`.
const RENEW_MS: i64 = 24 * 60 * 60 * 1000;

/// A token. Times are in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) id: Str,
    pub(crate) hmac: Bytes,
    pub(crate) owner: Principal,
    pub(crate) requester: Principal,
    pub(crate) renewers: Vec<Principal>,
    pub(crate) issued_ms: i64,
    /// When it ends unless it is renewed.
    pub(crate) expires_ms: i64,
    /// When it ends even so.
    pub(crate) ends_ms: i64,
}

impl Token {
    /// Whether somebody owns the token, has asked for it, or may renew it.
    pub(crate) fn concerns(&self, principal: &Principal) -> bool {
        self.owner == *principal || self.requester == *principal || self.renewers.contains(principal)
    }

    /// What who logs in by the token must prove: that they know its HMAC.
    pub(crate) fn credential(&self, mechanism: ScramMechanism) -> ScramCredential {
        let salt = Bytes::copy_from_slice(self.id.as_bytes());
        ScramCredential::of_password(mechanism, &STANDARD.encode(&self.hmac), salt)
    }

    fn has_ended(&self, now_ms: i64) -> bool {
        self.ends_ms < now_ms || self.expires_ms < now_ms
    }
}

/// The tokens of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    /// What HMACs are made with: Kafka's `delegation.token.secret.key`. There are no tokens without.
    pub(crate) secret: Option<Str>,
    by_id: BTreeMap<Str, Token>,
    /// Kafka's `delegation.token.max.lifetime.ms`.
    pub(crate) max_lifetime_ms: i64,
    /// Kafka's `delegation.token.expiry.time.ms`.
    pub(crate) renew_ms: i64,
    /// How often those that have ended are forgotten: Kafka's `delegation.token.expiry.check.interval.ms`.
    pub(crate) sweep_ms: i64,
    /// When those that have ended were forgotten the last time.
    swept_ms: Option<i64>,
}

impl Default for Tokens {
    fn default() -> Self {
        Self {
            secret: None,
            by_id: BTreeMap::new(),
            max_lifetime_ms: MAX_LIFETIME_MS,
            renew_ms: RENEW_MS,
            sweep_ms: SWEEP_MS,
            swept_ms: None,
        }
    }
}

impl Tokens {
    /// Makes a token, if there is a secret to make it with.
    pub(crate) fn create(
        &mut self,
        id: Str,
        (owner, requester): (Principal, Principal),
        renewers: Vec<Principal>,
        max_lifetime_ms: i64,
        now_ms: i64,
    ) -> Result<Token, ErrorCode> {
        let secret = self.secret.as_ref().ok_or(ErrorCode::DELEGATION_TOKEN_AUTH_DISABLED)?;
        let lifetime_ms =
            if max_lifetime_ms > 0 { max_lifetime_ms.min(self.max_lifetime_ms) } else { self.max_lifetime_ms };
        let ends_ms = now_ms + lifetime_ms;
        let token = Token {
            hmac: Bytes::from(hmac_sha512(secret.as_bytes(), id.as_bytes())),
            id,
            owner,
            requester,
            renewers,
            issued_ms: now_ms,
            expires_ms: ends_ms.min(now_ms + self.renew_ms),
            ends_ms,
        };
        self.by_id.insert(token.id.clone(), token.clone());
        Ok(token)
    }

    /// Lets a token live longer, for Kafka's default if the period is not above zero, and says until when.
    pub(crate) fn renew(
        &mut self,
        hmac: &[u8],
        principal: &Principal,
        period_ms: i64,
        now_ms: i64,
    ) -> Result<i64, ErrorCode> {
        let renew_ms = self.renew_ms;
        let token = self.find(hmac)?;
        if token.has_ended(now_ms) {
            return Err(ErrorCode::DELEGATION_TOKEN_EXPIRED);
        }
        if !token.concerns(principal) {
            return Err(ErrorCode::DELEGATION_TOKEN_OWNER_MISMATCH);
        }
        let period_ms = if period_ms <= 0 { renew_ms } else { period_ms.min(renew_ms) };
        token.expires_ms = token.ends_ms.min(now_ms + period_ms);
        Ok(token.expires_ms)
    }

    /// Ends a token after a while, or at once if the period is below zero, and says when that is.
    pub(crate) fn expire(
        &mut self,
        hmac: &[u8],
        principal: &Principal,
        period_ms: i64,
        now_ms: i64,
    ) -> Result<i64, ErrorCode> {
        let token = self.find(hmac)?;
        if !token.concerns(principal) {
            return Err(ErrorCode::DELEGATION_TOKEN_OWNER_MISMATCH);
        }
        if period_ms < 0 {
            let id = token.id.clone();
            self.by_id.remove(&id);
            return Ok(now_ms);
        }
        if token.has_ended(now_ms) {
            return Err(ErrorCode::DELEGATION_TOKEN_EXPIRED);
        }
        token.expires_ms = token.ends_ms.min(now_ms.saturating_add(period_ms));
        Ok(token.expires_ms)
    }

    /// Forgets tokens that have ended, if it is time for that again.
    pub(crate) fn sweep(&mut self, now_ms: i64) {
        let swept_ms = *self.swept_ms.get_or_insert(now_ms);
        let last_ms = now_ms - (now_ms - swept_ms).rem_euclid(self.sweep_ms);
        if last_ms > swept_ms {
            self.by_id.retain(|_, token| !token.has_ended(last_ms));
            self.swept_ms = Some(last_ms);
        }
    }

    /// The token of that id.
    pub(crate) fn by_id(&self, id: &str) -> Option<&Token> {
        self.by_id.get(id)
    }

    /// All tokens, in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Token> {
        self.by_id.values()
    }

    fn find(&mut self, hmac: &[u8]) -> Result<&mut Token, ErrorCode> {
        if self.secret.is_none() {
            return Err(ErrorCode::DELEGATION_TOKEN_AUTH_DISABLED);
        }
        let found = self.by_id.values_mut().find(|token| token.hmac == hmac);
        found.ok_or(ErrorCode::DELEGATION_TOKEN_NOT_FOUND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alice() -> Principal {
        Principal::user("alice")
    }

    fn with_token(max_lifetime_ms: i64) -> (Tokens, Token) {
        let mut tokens = Tokens { secret: Some("secret".into()), ..Tokens::default() };
        tokens.sweep(0);
        let token = tokens.create("t".into(), (alice(), alice()), Vec::new(), max_lifetime_ms, 0);
        (tokens, token.expect("there is a secret"))
    }

    #[test]
    fn tokens_are_renewed_up_to_their_end() {
        let (mut tokens, token) = with_token(RENEW_MS + 10);
        assert_eq!((token.expires_ms, token.ends_ms), (RENEW_MS, RENEW_MS + 10));

        assert_eq!(tokens.renew(&token.hmac, &alice(), 5, 1), Ok(6));
        assert_eq!(tokens.renew(&token.hmac, &alice(), -1, 6), Ok(RENEW_MS + 6));
        assert_eq!(tokens.renew(&token.hmac, &alice(), i64::MAX, 100), Ok(RENEW_MS + 10));
        assert_eq!(tokens.renew(&token.hmac, &alice(), 1, RENEW_MS + 11), Err(ErrorCode::DELEGATION_TOKEN_EXPIRED));
    }

    #[test]
    fn ended_tokens_are_forgotten_within_the_hour() {
        let (mut tokens, token) = with_token(10);

        tokens.sweep(SWEEP_MS - 1);
        assert!(tokens.by_id("t").is_some());
        tokens.sweep(SWEEP_MS + 5);
        assert_eq!(tokens.renew(&token.hmac, &alice(), 1, SWEEP_MS), Err(ErrorCode::DELEGATION_TOKEN_NOT_FOUND));
    }

    #[test]
    fn strangers_may_do_nothing_with_a_token() {
        let (mut tokens, token) = with_token(-1);
        let (bob, mismatch) = (Principal::user("bob"), Err(ErrorCode::DELEGATION_TOKEN_OWNER_MISMATCH));

        assert_eq!(tokens.renew(&token.hmac, &bob, 1, 0), mismatch);
        assert_eq!(tokens.expire(&token.hmac, &bob, -1, 0), mismatch);
        assert_eq!(tokens.expire(&token.hmac, &alice(), -1, 3), Ok(3));
        assert!(tokens.by_id("t").is_none());
    }
}
