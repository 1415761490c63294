use krafka::*;
use std::time::Duration;
#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().collect();
    let mut b = Kafka::builder(args[1].clone());
    if let Ok(ca) = std::env::var("CA") {
        b = b.tls_roots_pem(std::fs::read(ca).unwrap());
    }
    if args.len() > 3 {
        b = b.sasl_plain(args[2].clone(), args[3].clone());
    }
    let t = std::time::Instant::now();
    let kafka = match b.connect().await {
        Ok(k) => k,
        Err(e) => {
            println!("after {:?}: {e}\n{e:?}", t.elapsed());
            return;
        }
    };
    println!("connected {:?}", t.elapsed());
    let admin = kafka.admin().with_timeout(Duration::from_secs(10));
    println!("{:?}", (admin.describe_cluster()).await);
    println!(
        "{:?}",
        (admin.create_topics([
            NewTopic::new("cc-a", 3),
            NewTopic::new("cc-b", 1).config("retention.ms", "1000"),
            NewTopic::new("bad name", 1),
            NewTopic::new("cc-c", 1).config("nonsense", "1")
        ]))
        .await
    );
    println!("{:?}", admin.create_topics([NewTopic::new("cc-a", 3)]).await);
    println!("{:?}", admin.create_partitions([("cc-a", 5), ("cc-b", 1), ("cc-none", 2)]).await);
    println!(
        "{:?}",
        admin
            .describe_topics(["cc-a", "cc-none", "bad name"])
            .await
            .map(|m| m.into_iter().map(|(k, v)| (k, v.map(|t| t.partitions.len()))).collect::<Vec<_>>())
    );
    println!(
        "{:?}",
        admin.list_topics().await.map(|l| l.into_iter().map(|t| (t.name, t.partitions.len())).collect::<Vec<_>>())
    );
    println!("{:?}", admin.delete_topics(["cc-a", "cc-b", "cc-none"]).await);
}
