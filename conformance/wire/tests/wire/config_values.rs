//! Values of configs that are read and written as Java does it, and configs that are told of only where they are set.

use krafka_fake_broker::{KafkaVersion, SecurityProtocol};
use krafka_protocol::Str;

use crate::configs::{BROKER, DELETE, SET, TOPIC, change, config, describe, refusal};
use crate::records::{batch, error, produce};
use crate::secured;
use crate::target::{run, run_on_three};

/// A value that is a number is named as Java writes it; one that is none, as it came.
#[test]
fn refused_numbers_are_named_as_java_writes_them() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let name = "min.cleanable.dirty.ratio";
        let (few, many) = ("Value must be at least 0", "Value must be no more than 1");
        let none = "Not a number of type DOUBLE";
        for (value, shown, reason) in [
            ("-1", "-1.0", few),
            ("7", "7.0", many),
            (" 7 ", "7.0", many),
            ("7f", "7.0", many),
            ("0x1p3", "8.0", many),
            ("99999999999", "9.9999999999E10", many),
            ("9999999", "9999999.0", many),
            ("1e7", "1.0E7", many),
            ("-0.001", "-0.001", few),
            ("-1e-5", "-1.0E-5", few),
            ("1e400", "Infinity", many),
            ("-Infinity", "-Infinity", few),
            ("nan", "nan", none),
            ("inf", "inf", none),
            ("1_0", "1_0", none),
            (" x ", " x ", none),
            ("", "", none),
        ] {
            let refused = refusal(&mut wire, TOPIC, &topic.name, vec![change(name, SET, Some(value))]).await;
            let words = format!("Invalid value {shown} for configuration {name}: {reason}");
            assert_eq!(refused, ("INVALID_CONFIG", words), "{value:?}");
        }
        for (value, shown) in
            [("+0.50", "0.5"), ("0.5d", "0.5"), (".5", "0.5"), ("0x1.8p-1", "0.75"), ("1e-5", "1.0E-5"), ("NaN", "NaN")]
        {
            let taken = refusal(&mut wire, TOPIC, &topic.name, vec![change(name, SET, Some(value))]).await;
            assert_eq!(taken, ("NONE", String::new()), "{value:?}");
            let told = config(&mut wire, TOPIC, &topic.name, name).await;
            assert_eq!(told.value.as_deref(), Some(shown));
        }
    });
}

#[test]
fn numbers_have_a_most() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let told = describe(&mut wire, TOPIC, &topic.name).await;
        let mosts = [
            ("compression.lz4.level", 17),
            ("compression.zstd.level", 22),
            ("max.decompressed.message.bytes", 2_147_483_639),
        ];
        for (name, most) in mosts {
            if told.configs.iter().all(|config| config.name != name) {
                assert_eq!(name, "max.decompressed.message.bytes", "only this one is younger than 3.9");
                continue;
            }
            let value = (most + 1).to_string();
            let refused = refusal(&mut wire, TOPIC, &topic.name, vec![change(name, SET, Some(&value))]).await;
            let words = format!("Invalid value {value} for configuration {name}: Value must be no more than {most}");
            assert_eq!(refused, ("INVALID_CONFIG", words));
            let taken = refusal(&mut wire, TOPIC, &topic.name, vec![change(name, SET, Some(&most.to_string()))]).await;
            assert_eq!(taken, ("NONE", String::new()), "{name}");
        }

        let node = crate::configs::node_of(&mut wire).await;
        let name = "compression.lz4.level";
        let refused = refusal(&mut wire, BROKER, &node, vec![change(name, SET, Some("18"))]).await;
        let words = format!("Invalid value 18 for configuration {name}: Value must be no more than 17");
        assert_eq!(refused, ("INVALID_REQUEST", words));
    });
}

/// Blanks around a value do not count, unless it is none of its type.
#[test]
fn refused_values_are_named_with_the_blanks_around_them() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        for (name, value, shown, reason) in [
            ("preallocate", " 5 ", " 5 ", "Expected value to be either true or false"),
            ("preallocate", "\tx", "\tx", "Expected value to be either true or false"),
            ("preallocate", " ", " ", "Expected value to be either true or false"),
            ("retention.ms", " x ", " x ", "Not a number of type LONG"),
            ("retention.ms", " -5 ", "-5", "Value must be at least -1"),
            ("segment.bytes", " 1.0", " 1.0", "Not a number of type INT"),
            ("cleanup.policy", " x ", "x", "String must be one of: compact, delete"),
            ("message.timestamp.type", " x ", "x", "String must be one of: CreateTime, LogAppendTime"),
        ] {
            let refused = refusal(&mut wire, TOPIC, &topic.name, vec![change(name, SET, Some(value))]).await;
            let words = format!("Invalid value {shown} for configuration {name}: {reason}");
            assert_eq!(refused, ("INVALID_CONFIG", words), "{name} {value:?}");
        }
        for (name, value, shown) in [("preallocate", " TRUE ", "true"), ("retention.ms", " +05", "5")] {
            let taken = refusal(&mut wire, TOPIC, &topic.name, vec![change(name, SET, Some(value))]).await;
            assert_eq!(taken, ("NONE", String::new()));
            let told = config(&mut wire, TOPIC, &topic.name, name).await;
            assert_eq!(told.value.as_deref(), Some(shown));
        }
    });
}

/// What Kafka's own tests set is told of only where it is set, takes any number, and acts.
#[test]
fn internal_size_of_segments_is_told_where_it_is_set() {
    run(async |target| {
        target.since(KafkaVersion::V4_1, "internal.segment.bytes").await;
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let name = "internal.segment.bytes";
        let told = describe(&mut wire, TOPIC, &topic.name).await;
        assert!(told.configs.iter().all(|config| config.name != name));

        let refused = refusal(&mut wire, TOPIC, &topic.name, vec![change(name, SET, Some("99999999999"))]).await;
        let words = format!("Invalid value 99999999999 for configuration {name}: Not a number of type INT");
        assert_eq!(refused, ("INVALID_CONFIG", words));

        for (size, fits) in [("14", false), ("-1", false), ("200", true)] {
            let topic = target.topic_with(1, &[(name, size)]).await;
            let told = config(&mut wire, TOPIC, &topic.name, name).await;
            assert_eq!((told.value.as_deref(), told.config_source, told.config_type), (Some(size), 1, 3));
            let synonyms: Vec<_> = told.synonyms.iter().map(|s| (&*s.name, s.value.as_deref(), s.source)).collect();
            assert_eq!(synonyms, [(name, Some(size), 1)]);
            let usual = config(&mut wire, TOPIC, &topic.name, "segment.bytes").await;
            assert_eq!((usual.value.as_deref(), usual.config_source), (Some("1073741824"), 5));
            let answer = produce(&mut wire, &topic, batch(&["tea"])).await;
            assert_eq!(error(answer.error_code), if fits { "NONE" } else { "RECORD_LIST_TOO_LARGE" }, "{size}");
        }
    });
}

/// A broker knows which authorizer it has, and not what that one reads in the file for itself.
#[test]
fn authorizer_is_told_as_it_is_in_the_file() {
    secured::run(async |cluster| {
        let mut wire = cluster.connect(SecurityProtocol::Plaintext).await;
        let node = crate::configs::node_of(&mut wire).await;

        let authorizer = config(&mut wire, BROKER, &node, "authorizer.class.name").await;
        let class = "org.apache.kafka.metadata.authorizer.StandardAuthorizer";
        assert_eq!((authorizer.value.as_deref(), authorizer.config_source), (Some(class), 4));
        assert!(authorizer.read_only && !authorizer.is_sensitive);
        let synonyms: Vec<_> = authorizer.synonyms.iter().map(|s| (s.value.as_deref(), s.source)).collect();
        assert_eq!(synonyms, [(Some(class), 4), (Some(""), 5)]);

        let users = config(&mut wire, BROKER, &node, "super.users").await;
        assert_eq!((users.value, users.config_source, users.config_type), (None::<Str>, 4, 0));
        assert!(users.read_only && users.is_sensitive);
        let synonyms: Vec<_> = users.synonyms.iter().map(|s| (&*s.name, s.value.as_deref(), s.source)).collect();
        assert_eq!(synonyms, [("super.users", None, 4)]);
    });
}

/// FI-11e. What is set for one broker acts where that one leads, and is told by that one alone.
#[test]
fn value_of_one_broker_acts_where_it_leads() {
    run_on_three(async |target| {
        let topics = [target.topic_on(&[1, 2]).await, target.topic_on(&[2, 1]).await];
        let mut wires = [target.node(1).await, target.node(2).await];
        // A little less than the default, so that other tests of the same cluster notice nothing.
        let (name, most) = ("message.max.bytes", "1048500");
        let set = refusal(&mut wires[0], BROKER, "1", vec![change(name, SET, Some(most))]).await;
        assert_eq!(set, ("NONE", String::new()));

        let mut seen = Vec::new();
        for (wire, topic) in wires.iter_mut().zip(&topics) {
            let (fits, large) = ("x".repeat(1_048_300), "x".repeat(1_048_480));
            assert_eq!(error(produce(wire, topic, batch(&[&fits])).await.error_code), "NONE");
            let told = config(wire, TOPIC, &topic.name, "max.message.bytes").await;
            let synonyms: Vec<_> =
                told.synonyms.iter().map(|s| (s.value.clone().unwrap_or_default(), s.source)).collect();
            let refused = error(produce(wire, topic, batch(&[&large])).await.error_code);
            seen.push((told.value.unwrap_or_default(), told.config_source, synonyms, refused));
        }
        let unset = refusal(&mut wires[0], BROKER, "1", vec![change(name, DELETE, None)]).await;
        assert_eq!(unset, ("NONE", String::new()));

        let (own, default) = ((Str::from(most), 2), (Str::from("1048588"), 5));
        assert_eq!(seen[0], (own.0.clone(), 2, vec![own, default.clone()], "MESSAGE_TOO_LARGE"));
        assert_eq!(seen[1], (default.0.clone(), 5, vec![default], "NONE"));
        // It acts no more when it is gone.
        let large = "x".repeat(1_048_480);
        assert_eq!(error(produce(&mut wires[0], &topics[0], batch(&[&large])).await.error_code), "NONE");
    });
}
