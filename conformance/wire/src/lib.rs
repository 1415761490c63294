//! The tests are in `tests/wire`: what a broker answers on the wire, rule by rule, on the fake and on real Kafka.
