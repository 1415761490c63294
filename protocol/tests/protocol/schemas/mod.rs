//! Every `SCHEMA`, field by field, against the JSON inside the jars of six releases of Kafka.
//!
//! A codec that client and fake broker share would hide a field that both have wrong; this is the
//! first of the three checks against that (`ARCHITECTURE.md`, "One message, declared once").

mod compare;
mod facts;

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::ApiKey;
use krafka_protocol::coordinator::{GroupRecord, RecordType, ShareRecord, TransactionRecord};
use krafka_protocol::schema::{MessageSchema, Versions};
use serde_json::Value;

use self::compare::{compare, versions};
use self::facts::{CHANGED, CHANGED_UNSTABLE, EARLIER_NAMES, GIVEN_UP, LEFT_OUT};
use crate::jar::{RELEASES, Release, releases};
use crate::payloads::PAYLOADS;

#[test]
fn schemas_are_those_of_every_release() {
    let (mut found, mut expected) = (BTreeSet::new(), BTreeSet::new());
    for release in releases() {
        let is_given_up = |name| GIVEN_UP.iter().any(|(other, last)| *other == name && release.version <= *last);
        for (name, ours) in declared().into_iter().filter(|(name, _)| !is_given_up(*name)) {
            let theirs = find(release, name);
            let differences = theirs.map(|theirs| compare(name, ours, &theirs)).unwrap_or_default();
            found.extend(differences.into_iter().map(|difference| (release.version, difference)));
        }
        let unstable = if cfg!(feature = "unstable-protocol") { CHANGED_UNSTABLE } else { &[] };
        let changed =
            CHANGED.iter().chain(unstable).filter(|(.., first, last)| (*first..=*last).contains(&release.version));
        expected.extend(changed.map(|(path, how, ..)| (release.version, format!("{path}: {how}"))));
    }

    let new: Vec<_> = found.difference(&expected).collect();
    let gone: Vec<_> = expected.difference(&found).collect();
    assert!(new.is_empty() && gone.is_empty(), "differences: {new:#?}\nno differences: {gone:#?}");
}

/// What is new in a jar is found by its name: it is declared, or there is a reason why not.
#[test]
fn every_schema_is_declared_or_left_out_for_a_reason() {
    for release in releases() {
        let files: BTreeSet<_> = release.schemas.keys().map(String::as_str).collect();
        let declared: BTreeSet<_> =
            declared().into_iter().flat_map(|(name, _)| [Some(name), earlier_name(name)]).flatten().collect();
        let left_out: BTreeSet<_> = LEFT_OUT.iter().map(|(name, _)| *name).collect();

        let unknown: Vec<_> =
            files.iter().filter(|name| !declared.contains(*name) && !left_out.contains(*name)).collect();
        assert!(unknown.is_empty(), "Kafka {} has schemas that are not declared: {unknown:?}", release.version);
        let both: Vec<_> = declared.intersection(&left_out).collect();
        assert!(both.is_empty(), "declared, and left out as well: {both:?}");
    }
}

#[test]
fn every_message_is_one_of_kafkas() {
    if releases().len() < RELEASES.len() {
        return;
    }
    for (name, _) in declared() {
        assert!(releases().iter().any(|release| find(release, name).is_some()), "no release has {name}");
    }
}

/// From the lowest version of the oldest release to the highest of the newest, without what is unstable in the newest
/// that has it; that is there with the feature.
#[test]
fn messages_have_all_versions_of_all_releases() {
    if releases().len() < RELEASES.len() {
        return;
    }
    let mut wrong = Vec::new();
    for (name, ours) in declared() {
        let mut is_stable = BTreeMap::new();
        for release in releases() {
            let valid = find(release, name).and_then(|schema| versions(&schema["validVersions"]));
            for version in valid.into_iter().flat_map(|valid| valid.iter()) {
                is_stable.insert(version, unstable(release, name) != Some(version));
            }
        }
        is_stable.retain(|_, is_stable| *is_stable || cfg!(feature = "unstable-protocol"));
        if !is_stable.keys().copied().eq(ours.versions.iter()) {
            wrong.push(format!("{name}: versions {} instead of {:?}", ours.versions, is_stable.keys()));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn the_table_has_what_kafka_4_4_serves() {
    let Some(newest) = releases().iter().find(|release| release.version == "4.4.0") else { return };
    for api in ApiKey::SPOKEN {
        let name = format!("{api}Request");
        let served = find(newest, &name).and_then(|schema| versions(&schema["validVersions"])).map(|valid| {
            let is_unstable = unstable(newest, &name).is_some();
            Versions { max: valid.max - i16::from(is_unstable), ..valid }
        });

        assert_eq!(api.offered(), served, "{api}");
    }
}

/// Every message that has a schema of its own, by the name that Kafka gives it.
fn declared() -> Vec<(&'static str, &'static MessageSchema)> {
    let apis = ApiKey::SPOKEN.iter().flat_map(|api| api.schemas().expect("we speak it"));
    let payloads = PAYLOADS.iter().map(|payload| (payload.name, payload.schema));
    let logged = logged().flat_map(|record| [(record.key.name, record.key), (record.value.name, record.value)]);
    apis.map(|schema| (schema.name, schema)).chain(payloads).chain(logged).collect()
}

/// What coordinators write into their logs.
fn logged() -> impl Iterator<Item = &'static RecordType> {
    [GroupRecord::TYPES, TransactionRecord::TYPES, ShareRecord::TYPES].into_iter().flatten()
}

/// The schema of a message, under the name that it has in the release.
fn find(release: &Release, name: &str) -> Option<Value> {
    let schema = release.schemas.get(name).or_else(|| release.schemas.get(earlier_name(name)?))?;
    Some(as_data(schema.clone(), name))
}

/// What coordinators log has no API; but since 4.1 schemas have the number of the record's type in that place. Before,
/// the number was called the version of the key: then this makes version 0 of it.
fn as_data(mut schema: Value, name: &str) -> Value {
    let Some(record) = logged().find(|record| record.key.name == name || record.value.name == name) else {
        return schema;
    };
    let is_key = record.key.name == name;
    if schema["type"] == if is_key { "coordinator-key" } else { "coordinator-value" } {
        assert_eq!(schema["apiKey"].take(), record.number, "{name}");
        schema["type"] = "data".into();
    } else if is_key {
        let has_number = |json: &Value| versions(json).is_some_and(|versions| versions.contains(record.number));
        assert!(has_number(&schema["validVersions"]), "{name}");
        schema["validVersions"] = "0".into();
        for field in schema["fields"].as_array_mut().expect("a key has fields") {
            assert!(has_number(&field["versions"]), "{name}: {field}");
            field["versions"] = "0".into();
        }
    }
    schema
}

fn earlier_name(name: &str) -> Option<&'static str> {
    EARLIER_NAMES.iter().find(|(now, _)| *now == name).map(|(_, earlier)| *earlier)
}

/// The version of a message that a release calls unstable: both directions have the same, and only requests say it.
fn unstable(release: &Release, name: &str) -> Option<i16> {
    let request = find(release, &name.replace("Response", "Request"))?;
    (request["latestVersionUnstable"] == true).then(|| versions(&request["validVersions"]).expect("it is in use").max)
}
