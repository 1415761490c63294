//! What a broker answers on the wire, rule by rule.
//!
//! A test asks through raw requests and knows nothing of the fake's inside, so it runs on a real broker as well:
//! `KRAFKA_BOOTSTRAP=127.0.0.1:9092 cargo test -p conformance-wire`. Without the variable it runs on
//! the fake, in memory and in virtual time. The modules `faults` and `sasl` ask for more than a plain broker has,
//! and say so. `just agreements` runs them on the fake and on two real Kafkas, and writes `conformance/AGREEMENTS.md`.

mod acls;
mod admin;
mod agreement;
mod authorization;
mod byzantine;
mod cleaning;
mod configs;
mod connections;
mod consumer;
mod consumer_groups;
mod consumer_refusals;
mod consumer_regex;
mod consumer_settings;
mod coverage;
mod delegation_tokens;
mod delete_records;
mod elections;
mod faults;
mod faults_absurd;
mod faults_answers;
mod faults_bytes;
mod faults_cluster;
mod feature_levels;
mod fetch;
mod fetch_sessions;
mod followers;
mod group_admin;
mod group_table;
mod groups;
mod lagging;
mod leaders;
mod list_offsets;
mod listeners;
mod logins;
mod machine;
mod mechanisms;
mod member;
mod member_commits;
mod metadata;
mod migration;
mod offsets;
mod old_formats;
mod preferred;
mod produce;
mod produce_rules;
mod producers;
mod quotas;
mod reauthentication;
mod records;
mod sasl;
mod secured;
mod session_cache;
mod share_acknowledge;
mod share_fetch;
mod share_groups;
mod share_member;
mod share_offsets;
mod share_state;
mod streams_groups;
mod target;
mod telemetry;
mod topics;
mod transaction_admin;
mod transaction_controls;
mod transaction_ends;
mod transaction_offsets;
mod transactional;
mod transactions;
mod two_phase;
