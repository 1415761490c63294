//! How errors are classed, code by code, and what they show.

use std::error::Error as _;

use super::*;

fn codes(is: impl Fn(&KrafkaError) -> bool) -> Vec<ErrorCode> {
    ErrorCode::ALL.iter().copied().filter(|code| is(&KrafkaError::broker(*code, "asking"))).collect()
}

/// The table is Kafka's (`protocol/tests/protocol/error_codes.rs` compares it with every release).
#[test]
fn a_broker_error_is_retriable_where_kafka_says_so() {
    let retriable: Vec<_> = ErrorCode::ALL.iter().copied().filter(|code| code.is_retriable()).collect();

    assert!(retriable.len() > 30, "{retriable:?}");
    assert_eq!(codes(KrafkaError::is_retriable), retriable);
}

#[test]
fn what_a_transaction_or_a_client_does_not_survive_is_told_apart() {
    assert_eq!(codes(KrafkaError::requires_abort), [ErrorCode::TRANSACTION_ABORTABLE]);
    assert_eq!(
        codes(KrafkaError::is_fatal),
        [
            ErrorCode::UNSUPPORTED_SASL_MECHANISM,
            ErrorCode::ILLEGAL_SASL_STATE,
            ErrorCode::SASL_AUTHENTICATION_FAILED,
            ErrorCode::FENCED_INSTANCE_ID,
            ErrorCode::PRODUCER_FENCED,
        ]
    );
}

#[test]
fn no_error_is_in_two_classes() {
    let text = || Arc::<str>::from("x");
    let (topic, message) = (text(), text());
    let errors = [
        KrafkaError::network("connecting", io::ErrorKind::ConnectionRefused.into()),
        KrafkaError::protocol(ProtocolErrorKind::Malformed, text()),
        KrafkaError::auth(text()),
        KrafkaError::timeout(text()),
        KrafkaError::DeliveryTimeout { possibly_written: true, message: text() },
        KrafkaError::config(text()),
        KrafkaError::closed(text()),
        KrafkaError::Fenced { message: text() },
        KrafkaError::TransactionAbortable { message: text() },
        KrafkaError::NoOffset { partitions: [crate::TopicPartition::new("orders", 0)].into() },
        KrafkaError::UnknownTopic { topic: text() },
        KrafkaError::OutOfOrderSequence { topic: topic.clone(), partition: 0, message: message.clone() },
        KrafkaError::illegal_state(text()),
        KrafkaError::Compression { message: text() },
        KrafkaError::Serialization { message: text() },
        KrafkaError::RecordDeserialization { topic, partition: 0, offset: 0, message },
        KrafkaError::Wakeup,
    ];
    let classes = |error: &KrafkaError| [error.is_retriable(), error.requires_abort(), error.is_fatal()];
    let many = ErrorCode::ALL.iter().map(|code| KrafkaError::broker(*code, "asking")).chain(errors);

    for error in many {
        let classes = classes(&error).into_iter().filter(|is| *is).count();
        assert!(classes <= 1, "{error:?} is in {classes}");
    }
}

#[test]
fn a_network_error_tells_all_and_keeps_its_source() {
    let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
    let said = refused.to_string();

    let error = KrafkaError::network("connecting to kafka:9092", refused);

    assert_eq!(error.to_string(), format!("connecting to kafka:9092: {said}"));
    let KrafkaError::Network(network) = &error else { panic!("{error:?}") };
    assert_eq!(network.kind(), io::ErrorKind::ConnectionRefused);
    let source = network.source().expect("what the system said");
    assert_eq!(source.to_string(), said);
    assert_eq!(error.source().expect("the same").to_string(), said);
}

/// Told anew, an error keeps what it came from; one that came from nothing is what the new one comes from.
#[test]
fn an_error_that_is_told_anew_keeps_its_source() {
    let decoding = io::Error::other("3 bytes are missing");
    let malformed = KrafkaError::protocol_because(
        ProtocolErrorKind::Malformed,
        "it does not decode",
        Arc::new(decoding) as Arc<dyn Error + Send + Sync>,
    );
    let source = |error: &KrafkaError| error.source().expect("a source").to_string();

    let again = malformed.saying("no broker: it does not decode".into()).saying("gave up: it does not decode".into());
    assert_eq!((again.to_string().as_str(), &*source(&again)), ("gave up: it does not decode", "3 bytes are missing"));

    for error in [
        KrafkaError::protocol(ProtocolErrorKind::NotKafka, "it speaks HTTP"),
        KrafkaError::broker(ErrorCode::UNKNOWN_SERVER_ERROR, "asking"),
        KrafkaError::timeout("no answer"),
        KrafkaError::config("no port"),
    ] {
        assert!(error.source().is_none());
        let again = error.saying("one".into()).saying("two".into());
        assert!(again.to_string().starts_with("two"), "{again}");
        assert_eq!(source(&again), error.to_string());
    }
}
