//! Which versions of which APIs there are, as Java's classes say it.

use krafka_protocol::{ApiKey, Versions};

use crate::vectors::{ApiVersion, api_versions};

#[test]
fn the_table_has_what_kafka_4_4_serves() {
    for (api, of_java) in apis() {
        let served = of_java.iter().filter(|version| version.release != "3.9.2" && !version.is_unstable);

        assert_eq!(api.offered(), range(served), "{api}");
    }
}

/// From the lowest of 3.9 to the highest of 4.4; what the newest release that has it calls unstable, with the feature.
#[test]
fn messages_have_all_versions_since_kafka_3_9() {
    for (api, of_java) in apis() {
        let is_stable = |version: &&ApiVersion| {
            let of_4_4 = |other: &&ApiVersion| other.version == version.version && other.release != "3.9.2";
            !of_java.iter().find(of_4_4).unwrap_or(version).is_unstable
        };
        let spoken = of_java.iter().filter(|version| is_stable(version) || cfg!(feature = "unstable-protocol"));

        assert_eq!(api.versions(), range(spoken), "{api}");
    }
}

#[test]
fn flexible_versions_are_those_of_java() {
    for (api, of_java) in apis() {
        for version in of_java {
            let is_flexible = api.flexible_since().is_some_and(|first| version.version >= first);

            assert_eq!(is_flexible, version.is_flexible, "{version:?}");
        }
    }
}

/// Each API with its versions in all releases.
fn apis() -> impl Iterator<Item = (ApiKey, Vec<ApiVersion>)> {
    let all = api_versions();
    ApiKey::ALL.iter().map(move |&api| (api, all.iter().filter(|version| version.api == api).cloned().collect()))
}

fn range<'a>(versions: impl Iterator<Item = &'a ApiVersion> + Clone) -> Option<Versions> {
    let numbers = versions.map(|version| version.version);
    Some(Versions::new(numbers.clone().min()?, numbers.max()?))
}
