//! Nothing goes wrong.

use krafka::Record;

use super::Stage;

#[tokio::test(start_paused = true)]
async fn a_record_is_written_where_its_metadata_says() {
    let stage = Stage::new(3).await;
    let producer = stage.producer().build().await.expect("the defaults are valid");

    let metadata = producer.send(Record::new("orders", "42 apples").key("foobar")).await.expect("written");

    let records = stage.fake.records("orders", metadata.partition);
    assert_eq!((&*metadata.topic, metadata.offset), ("orders", 0));
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].value.as_deref(), Some(&b"42 apples"[..]));
    assert_eq!(records[0].timestamp, metadata.timestamp_ms);
}
