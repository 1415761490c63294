//! What becomes of properties, URLs and variables.

use super::*;

fn builder(text: &str) -> Result<KafkaBuilder, String> {
    Properties::from_text(text).and_then(|properties| properties.builder()).map_err(|error| error.to_string())
}

#[track_caller]
fn assert_refused(text: &str, words: &[&str]) {
    let error = builder(text).expect_err("bad properties");
    for word in words {
        assert!(error.contains(word), "'{error}' lacks '{word}'");
    }
}

/// What the settings are, in words.
fn shown(text: &str) -> String {
    format!("{:?}", builder(text).expect("good properties"))
}

const SASL: &str = "bootstrap.servers=a:1\nsecurity.protocol=SASL_PLAINTEXT\n";

#[test]
fn settings_are_read() {
    let text = "bootstrap.servers=a:1,b:2\nclient.id=shop\nrequest.timeout.ms=7000\nacks=all\n\
                connections.max.idle.ms=-1\nmetadata.recovery.strategy=NONE\nallow.auto.create.topics=true";

    let shown = shown(text);

    for part in ["a:1,b:2", "shop", "7s", "None"] {
        assert!(shown.contains(part), "{shown} lacks {part}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    assert_refused("", &["bootstrap.servers is missing"]);
    assert_refused("bootstrap.servers=a:1\nrequest.timeout.ms=fast", &["request.timeout.ms is 'fast'", "milliseconds"]);
    assert_refused("bootstrap.servers=a:1\nmetadata.recovery.strategy=x", &["none or rebootstrap"]);
    assert_refused("bootstrap.servers=a:1\nallow.auto.create.topics=1", &["true or false"]);
    assert_refused("bootstrap.servers=a:1\nsecurity.protocol=TLS", &["'TLS'", "SASL_SSL"]);
    assert_refused(&format!("{SASL}sasl.mechanism=PLAIN"), &["sasl.jaas.config is missing"]);
    assert_refused(&format!("{SASL}sasl.jaas.config=x.Krb5LoginModule required;"), &["GSSAPI", "not served"]);
    assert_refused(&format!("{SASL}sasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka"), &["Kerberos"]);
    assert_refused(&format!("{SASL}sasl.mechanism=scram-sha-512"), &["'scram-sha-512'", "SCRAM-SHA-512"]);
    let iam = format!("{SASL}sasl.mechanism=AWS_MSK_IAM\nsasl.jaas.config=x.IAMLoginModule required");
    assert_refused(&format!("{iam} awsProfileName=\"prod\";"), &["awsProfileName", "sasl_aws_msk_iam"]);
    let plain = format!("{SASL}sasl.mechanism=PLAIN\nsasl.jaas.config=");
    assert_refused(&format!("{plain}x.PlainLoginModule required username=a;"), &["no option 'password'"]);
    assert_refused(&format!("{plain}x.ScramLoginModule required;"), &["ScramLoginModule", "PLAIN"]);
    let bearer = format!("{SASL}sasl.mechanism=OAUTHBEARER\nsasl.jaas.config=x.OAuthBearerLoginModule required;");
    assert_refused(&bearer, &["unsecuredLoginStringClaim_sub", "sasl_oauthbearer"]);
    assert_refused("bootstrap.servers=a:1\nx=\\u1", &["line 2"]);
    let handler = "sasl.login.callback.handler.class=io.strimzi.JaasClientOauthLoginCallbackHandler";
    assert_refused(&format!("{bearer}\n{handler}"), &["io.strimzi.Jaas", "sasl_oauthbearer"]);
    let handler = "sasl.login.callback.handler.class=org.apache.kafka.OAuthBearerLoginCallbackHandler";
    assert_refused(&format!("{bearer}\n{handler}"), &["token.endpoint.url is missing"]);
}

/// A slip of the pen does not connect without TLS or a login.
#[test]
fn a_slip_in_a_name_of_security_is_an_error() {
    assert_refused("bootstrap.servers=a:1\nsecurity.protocl=SASL_SSL", &["'security.protocl'", "'security.protocol'"]);
    assert_refused("bootstrap.servers=a:1\nsasl.mechanisms=PLAIN", &["'sasl.mechanism' meant"]);
    shown("bootstrap.servers=a:1\nreqest.timeout.ms=1\nssl.protocol=TLSv1.3\nsasl.kerberos.service.name=kafka");
}

/// A token's life that no clock can be moved on by.
#[test]
fn a_token_may_be_meant_to_live_for_ever() {
    let options = format!("unsecuredLoginStringClaim_sub=alice unsecuredLoginLifetimeSeconds={}", u64::MAX);
    let text = format!("x.OAuthBearerLoginModule required {options};");

    shown(&format!("{SASL}sasl.mechanism=OAUTHBEARER\nsasl.jaas.config={text}"));
}

#[test]
fn every_mechanism_is_read() {
    let mechanism = |name: &str, module: &str| {
        shown(&format!(
            "{SASL}sasl.mechanism={name}\nsasl.jaas.config=a.b.{module} required username=\"alice\" \
                        password=\"hunter2\";"
        ))
    };

    for (name, module, kind) in [
        ("PLAIN", "PlainLoginModule", "Plain"),
        ("SCRAM-SHA-256", "ScramLoginModule", "Sha256"),
        ("SCRAM-SHA-512", "ScramLoginModule", "Sha512"),
    ] {
        let shown = mechanism(name, module);
        assert!(shown.contains(kind) && shown.contains("alice") && !shown.contains("hunter2"), "{shown}");
    }
    let iam = format!("{SASL}sasl.mechanism=AWS_MSK_IAM\nsasl.jaas.config=x.IAMLoginModule required;");
    assert!(shown(&iam).contains("MskIam"));
    let token = shown(&format!(
        "{SASL}sasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config=ScramLoginModule required username=\"id\" \
         password=\"x\" tokenauth=\"true\";"
    ));
    assert!(token.contains("is_token: true"), "{token}");
}

#[cfg(feature = "tls")]
#[test]
fn stores_that_only_java_reads_are_named_with_the_remedy() {
    let tls = "bootstrap.servers=a:1\nsecurity.protocol=SSL\n";

    assert_refused(&format!("{tls}ssl.truststore.location=/x.jks"), &["ssl.truststore.type", "JKS", "keytool"]);
    assert_refused(&format!("{tls}ssl.keystore.location=/x\nssl.keystore.type=PKCS12"), &["PKCS12", "openssl"]);
    assert_refused(&format!("{tls}ssl.keystore.type=PEM\nssl.keystore.certificate.chain=x"), &["ssl.keystore.key"]);
    let all = shown(&format!(
        "{tls}ssl.truststore.type=PEM\nssl.truststore.location=/ca.pem\nssl.keystore.type=PEM\n\
         ssl.keystore.location=/me.pem\nssl.endpoint.identification.algorithm="
    ));
    for part in ["/ca.pem", "/me.pem", "accepts_any_name: true"] {
        assert!(all.contains(part), "{all} lacks {part}");
    }
}

fn url(text: &str) -> Result<String, String> {
    let properties = Properties::from_url(text).expect("a URL of ours");
    properties
        .and_then(|properties| properties.builder())
        .map(|builder| format!("{builder:?}"))
        .map_err(|e| e.to_string())
}

#[test]
fn a_url_holds_servers_user_and_settings() {
    let plain = url("kafka://a:1,[::1]:2").expect("a good URL");
    assert!(plain.contains("a:1,[::1]:2") && plain.contains("login: None"), "{plain}");

    let user = url("kafka://al%3Aice:hunter%402@a:1/?client.id=my%20shop").expect("a good URL");
    for part in ["\"a:1\"", "Plain", "al:ice", "my shop"] {
        assert!(user.contains(part), "{user} lacks {part}");
    }
    assert!(!user.contains("hunter"), "{user}");
    let scram = url("kafka://alice:x@a:1?sasl.mechanism=SCRAM-SHA-512").expect("a good URL");
    assert!(scram.contains("Sha512"), "{scram}");
}

#[cfg(feature = "tls")]
#[test]
fn a_url_may_ask_for_tls() {
    for scheme in ["kafka+tls", "kafkas", "kafka+ssl", "Kafka+TLS"] {
        let shown = url(&format!("{scheme}://alice:x@a:1")).expect("a good URL");
        assert!(shown.contains("Tls {") && shown.contains("Plain"), "{shown}");
    }
}

/// What contradicts the URL is not quietly left out, nor is the URL.
#[test]
fn a_url_and_settings_that_contradict_it_are_refused() {
    for (text, word) in [
        ("kafka://alice:hunter2@a:1?security.protocol=PLAINTEXT", "nobody logs in"),
        ("kafka://alice:hunter2@a:1?security.protocol=SSL", "nobody logs in"),
        ("kafka+tls://alice:hunter2@a:1?security.protocol=SASL_PLAINTEXT", "asks for TLS"),
        ("kafka+ssl://a:1?security.protocol=plaintext", "asks for TLS"),
        ("kafka://a:1?reqest.timeout.ms=1", "is 'request.timeout.ms' meant?"),
        ("kafka://a:1?acks=all", "unknown"),
        ("kafka://alice:hunt?hunter2@a:1", "%3F"),
    ] {
        let error = url(text).expect_err("a contradiction");
        assert!(error.contains(word) && !error.contains("hunt"), "'{error}' lacks '{word}'");
    }
}

#[test]
fn a_wrong_url_is_told() {
    for (text, word) in [
        ("kafka://a:1/path", "has a path"),
        ("kafka://alice@a:1", "without a password"),
        ("kafka://alice:%4@a:1", "'%'"),
        ("kafka://alice:%ff@a:1", "UTF-8"),
        ("kafka://a:1?x", "without a '='"),
        ("kafka://alice:x@a:1?sasl.mechanism=OAUTHBEARER", "OAUTHBEARER"),
    ] {
        let error = url(text).expect_err("a bad URL");
        assert!(error.contains(word), "'{error}' lacks '{word}'");
    }
    for text in ["a:1", "PLAINTEXT://a:1", "http://a:1"] {
        assert!(Properties::from_url(text).is_none(), "{text}");
    }
}

#[test]
fn variables_are_properties_by_another_name() {
    let variables = [("KRAFKA_BOOTSTRAP_SERVERS", "a:1"), ("KRAFKA_CLIENT_ID", "shop"), ("PATH", "/bin")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));

    let properties = Properties::from_variables(variables.into_iter());

    assert_eq!(properties.names().collect::<Vec<_>>(), ["bootstrap.servers", "client.id"]);
    assert_eq!(format!("{properties:?}"), r#"["bootstrap.servers", "client.id"]"#);
}

fn of_environment(variables: &[(&str, &str)]) -> Result<String, String> {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let builder = Properties::of_environment(variables);
    builder.map(|builder| format!("{builder:?}")).map_err(|error| error.to_string())
}

/// A URL that names no protocol does not take TLS or the login away that the other variables ask for.
#[test]
fn a_url_does_not_weaken_what_stands_beside_it() {
    let jaas = "ScramLoginModule required username=alice password=hunter2;";
    let beside = [
        ("KRAFKA_URL", "kafka://a:1"),
        ("KRAFKA_SECURITY_PROTOCOL", "SASL_PLAINTEXT"),
        ("KRAFKA_SASL_MECHANISM", "SCRAM-SHA-512"),
        ("KRAFKA_SASL_JAAS_CONFIG", jaas),
    ];
    let shown = of_environment(&beside).expect("they agree");
    assert!(shown.contains("Sha512") && !shown.contains("hunter2"), "{shown}");

    let of_user = [("KRAFKA_URL", "kafka://alice:hunter2@a:1"), ("KRAFKA_SASL_MECHANISM", "SCRAM-SHA-512")];
    let shown = of_environment(&of_user).expect("they agree");
    assert!(shown.contains("Sha512"), "{shown}");

    let twice = [("KRAFKA_URL", "kafka://a:1"), ("KRAFKA_BOOTSTRAP_SERVERS", "b:1")];
    let error = of_environment(&twice).expect_err("they differ");
    assert!(error.contains("KRAFKA_") && error.contains("bootstrap.servers"), "{error}");
    let error = of_environment(&of_user_and(jaas)).expect_err("two users");
    assert!(error.contains("sasl.jaas.config") && !error.contains("hunter2"), "{error}");
}

fn of_user_and(jaas: &str) -> [(&str, &str); 2] {
    [("KRAFKA_URL", "kafka://alice:hunter2@a:1"), ("KRAFKA_SASL_JAAS_CONFIG", jaas)]
}

#[test]
fn what_an_environment_lacks_is_named_as_there() {
    let error = of_environment(&[("KRAFKA_CLIENT_ID", "shop")]).expect_err("no servers");

    assert!(error.contains("KRAFKA_BOOTSTRAP_SERVERS") && error.contains("KRAFKA_URL"), "{error}");
}

/// Wherever a URL is put by mistake.
#[test]
fn a_url_in_the_wrong_place_keeps_its_password() {
    let shown = shown("bootstrap.servers=kafka://alice:hunter2@h:1");
    assert!(shown.contains("kafka://[hidden]@h:1"), "{shown}");
    let shown = format!("{:?}", KafkaBuilder::new("kafka+tsl://alice:hunter2@h:9092".to_owned()));
    assert!(!shown.contains("hunter2"), "{shown}");
}
