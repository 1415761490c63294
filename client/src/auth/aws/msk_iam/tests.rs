//! AWS_MSK_IAM: signatures as another implementation makes them, regions, and what a broker answers.

use std::time::UNIX_EPOCH;

use super::*;

/// The credentials of AWS's own examples.
fn keys() -> AwsCredentials {
    AwsCredentials::new("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
}

/// 2026-02-28 23:59:59.
fn at() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_772_323_199)
}

fn said(iam: &MskIam, keys: &AwsCredentials, host: &str) -> String {
    let exchange = iam.begin(keys, host, at()).expect("it can be signed");
    String::from_utf8(exchange.initial_response().to_vec()).expect("it is text")
}

/// AU-01. The signature is that of AWS's own signer (botocore 1.44.8) for the same request.
#[test]
fn the_signature_is_that_of_another_signer() {
    let said = said(&MskIam::new(keys()), &keys(), "b-1.shop.abc123.c2.kafka.us-east-1.amazonaws.com");

    let expected = format!(
        "{{\"version\":\"2020_10_22\",\
         \"host\":\"b-1.shop.abc123.c2.kafka.us-east-1.amazonaws.com\",\
         \"user-agent\":\"{USER_AGENT}\",\
         \"action\":\"kafka-cluster:Connect\",\
         \"x-amz-algorithm\":\"AWS4-HMAC-SHA256\",\
         \"x-amz-credential\":\"AKIAIOSFODNN7EXAMPLE/20260228/us-east-1/kafka-cluster/aws4_request\",\
         \"x-amz-date\":\"20260228T235959Z\",\
         \"x-amz-expires\":\"900\",\
         \"x-amz-signedheaders\":\"host\",\
         \"x-amz-signature\":\"b943b6e8bd495e585f25c3649fff28fcb4a2f76d1ae7a2ce00183c95f6c63336\"}}"
    );
    assert_eq!(said, expected);
}

/// AU-01. The same with temporary keys, whose token is signed, too.
#[test]
fn a_session_token_is_signed_too() {
    let keys = keys().session_token("IQoJb3JpZ2luX2VjE//+=tok");

    let said = said(&MskIam::new(keys.clone()), &keys, "boot-x1.c3.kafka-serverless.eu-central-1.amazonaws.com");

    assert!(said.contains("\"x-amz-security-token\":\"IQoJb3JpZ2luX2VjE//+=tok\""), "{said}");
    let signature = "8e3507952bffa2c74451932bb476cb2d518c99c45a6ec8adf37eeaf94b412588";
    assert!(said.contains(&format!("\"x-amz-signature\":\"{signature}\"")), "{said}");
}

#[test]
fn the_region_is_in_the_name_of_the_broker() {
    let region = |host| region_in(host);

    assert_eq!(region("b-1.name.id.c2.kafka.us-east-1.amazonaws.com"), Some("us-east-1"));
    assert_eq!(region("b-1.name.id.c2.kafka.us-east-1.amazonaws.com."), Some("us-east-1"));
    assert_eq!(region("boot-id.c1.kafka-serverless.eu-west-3.amazonaws.com"), Some("eu-west-3"));
    assert_eq!(region("b-2.name.id.c4.kafka.cn-north-1.amazonaws.com.cn"), Some("cn-north-1"));
    assert_eq!(region("kafka.example.com"), None);
    assert_eq!(region("amazonaws.com"), None);
    assert_eq!(region("s3.us-east-1.amazonaws.com"), None);
}

#[test]
fn a_region_that_was_given_goes_before_all_others() {
    let iam = MskIam::new(keys()).region("ap-south-1");

    assert!(said(&iam, &keys(), "b-1.n.i.c2.kafka.us-east-1.amazonaws.com").contains("/ap-south-1/kafka-cluster/"));
    assert!(iam.fault().is_none());
    assert!(MskIam::new(keys()).region("Frankfurt").fault().expect("no region").contains("eu-central-1"));
}

#[test]
fn what_cannot_be_signed_is_told_without_secrets() {
    let fault = |keys: AwsCredentials| keys.fault().expect("it is wrong");

    assert!(fault(AwsCredentials::new("", "x")).contains("access key id"));
    let secret = fault(AwsCredentials::new("a", "hunter2\n"));
    assert!(secret.contains("secret access key") && !secret.contains("hunter2"), "{secret}");
    assert!(fault(AwsCredentials::new("a", "x").session_token("")).contains("session token"));
}

#[test]
fn only_an_answer_of_the_same_version_is_believed() {
    let exchange = MskIam::new(keys()).region("us-east-1").begin(&keys(), "kafka", at()).expect("it can be signed");

    assert!(matches!(exchange.answer(br#"{"version":"2020_10_22","request-id":"1"}"#), Ok(Next::Done)));
    for wrong in [&b""[..], b"{}", b"\xff", br#"{"version":"2031_01_01"}"#] {
        assert!(exchange.answer(wrong).expect_err("it is wrong").contains("2020_10_22"));
    }
}

#[test]
fn nothing_breaks_out_of_its_quotes() {
    let mut json = SecretText::default();

    quote("a\"b\\c\nd", &mut json);

    assert_eq!(*json.into_text(), r#""a\"b\\cd""#);
}

#[test]
fn debug_hides_what_was_signed() {
    let iam = MskIam::new(keys()).region("us-east-1");
    let exchange = iam.begin(&keys(), "kafka", at()).expect("it can be signed");

    for text in [format!("{iam:?}"), format!("{exchange:?}")] {
        assert!(!text.contains("wJalr") && !text.contains("signature"), "{text}");
    }
}
