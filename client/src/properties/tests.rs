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
    let text = "bootstrap.servers=a:1,b:2\nclient.id=shop\nclient.rack=zone-7\nrequest.timeout.ms=7000\nacks=all\n\
                connections.max.idle.ms=-1\nmetadata.recovery.strategy=NONE\nallow.auto.create.topics=true";

    let shown = shown(text);

    for part in ["a:1,b:2", "shop", "zone-7", "7s", "None"] {
        assert!(shown.contains(part), "{shown} lacks {part}");
    }
}

/// As pages of providers show them.
#[test]
fn names_of_listeners_before_servers_are_passed_over_as_in_java() {
    for (servers, protocol) in [("SASL_PLAINTEXT://a:1,PLAINTEXT://b:2", "SASL_PLAINTEXT"), ("ssl://a:1, b:2", "SSL")] {
        let text = format!("bootstrap.servers={servers}\nsecurity.protocol={protocol}\n");
        let login = "sasl.mechanism=PLAIN\nsasl.jaas.config=x.PlainLoginModule required username=\"u\" password=\"p\";";

        assert!(shown(&format!("{text}{login}")).contains("\"a:1,b:2\""));
    }
}

#[test]
fn what_is_wrong_is_named() {
    assert_refused("", &["bootstrap.servers is missing"]);
    assert_refused(
        "bootstrap.servers=SASL_SSL://a:1",
        &["SASL_SSL", "security.protocol", "PLAINTEXT", "not encrypted"],
    );
    assert_refused("bootstrap.servers=a:1\nrequest.timeout.ms=fast", &["request.timeout.ms is 'fast'", "milliseconds"]);
    assert_refused("bootstrap.servers=a:1\nmetadata.recovery.strategy=x", &["none or rebootstrap"]);
    assert_refused("bootstrap.servers=a:1\nallow.auto.create.topics=1", &["true or false"]);
    assert_refused("bootstrap.servers=a:1\nsecurity.protocol=TLS", &["'TLS'", "SASL_SSL"]);
    assert_refused(&format!("{SASL}sasl.mechanism=PLAIN"), &["sasl.jaas.config is missing"]);
    // Kerberos has its login module in a file of the JVM.
    assert_refused(&format!("{SASL}sasl.mechanism=GSSAPI"), &["sasl.mechanism is GSSAPI", "Kerberos", "not served"]);
    let default = format!("{SASL}sasl.jaas.config=x.Krb5LoginModule required;");
    assert_refused(&default, &["sasl.mechanism is missing", "GSSAPI", "not served", "SCRAM-SHA-512"]);
    assert_refused(&format!("{SASL}sasl.mechanism=scram-sha-512"), &["'scram-sha-512'", "SCRAM-SHA-512"]);
    assert_refused("bootstrap.servers=a:1\nconfig.providers=file", &["config.providers", "${…}"]);
    // Java's default.
    shown("bootstrap.servers=a:1\nconfig.providers=");
    let iam = format!("{SASL}sasl.mechanism=AWS_MSK_IAM\nsasl.jaas.config=x.IAMLoginModule required");
    for option in ["awsRoleArn", "awsRoleSessionName", "awsStsRegion"] {
        let words = [option, "not known", "awsProfileName", "provider to sasl_aws_msk_iam"];
        assert_refused(&format!("{iam} awsProfileName=\"prod\" {option}=\"x\";"), &words);
    }
    // How Amazon's SDK does it, and whether it logs it.
    shown(&format!("{iam} awsDebugCreds=true awsMaxRetries=\"7\" awsMaxBackOffTimeMs=\"500\";"));
    let profile = format!("{iam} awsProfileName=\"prod\";");
    if cfg!(feature = "aws-config") {
        assert!(shown(&profile).contains("MskIam"));
    } else {
        assert_refused(&profile, &["awsProfileName", "the feature aws-config"]);
    }
    let plain = format!("{SASL}sasl.mechanism=PLAIN\nsasl.jaas.config=");
    assert_refused(&format!("{plain}x.PlainLoginModule required username=a;"), &["no option 'password'"]);
    assert_refused(&format!("{plain}x.ScramLoginModule required;"), &["ScramLoginModule", "PLAIN"]);
    let bearer = format!("{SASL}sasl.mechanism=OAUTHBEARER\nsasl.jaas.config=x.OAuthBearerLoginModule required;");
    assert_refused(&bearer, &["unsecuredLoginStringClaim_sub", "sasl_oauthbearer"]);
    assert_refused("bootstrap.servers=a:1\nx=\\u1", &["line 2"]);
}

/// A slip of the pen does not connect without TLS or a login; others are warned of.
#[test]
fn a_slip_in_a_name_of_security_is_an_error() {
    assert_refused(
        "bootstrap.servers=a:1\nsecurity.protocl=SASL_SSL",
        &["security.protocl", "is security.protocol meant"],
    );
    assert_refused("bootstrap.servers=a:1\nsasl.mechanisms=PLAIN", &["is sasl.mechanism meant"]);
    shown("bootstrap.servers=a:1\nreqest.timeout.ms=1\nssl.x=x\nsasl.kerberos.service.name=kafka\nacks=1");
}

/// What allows less than there is without it is done, or is an error, in a file as in a variable.
#[test]
fn what_restricts_is_never_passed_over() {
    let ssl = "bootstrap.servers=a:1\nsecurity.protocol=SSL\n";
    for name in ["ssl.engine.factory.class", "ssl.crl.location", "ssl.sigalgs.list"] {
        assert_refused(&format!("{ssl}{name}=com.bank.Hsm"), &[name, "not served"]);
        let variable = names::variable(name);
        assert_unfit(&[("KRAFKA_BOOTSTRAP_SERVERS", "a:1"), (&variable, "x")], &[&variable]);
    }
}

#[cfg(feature = "tls")]
#[test]
fn versions_and_cipher_suites_are_read() {
    let ssl = "bootstrap.servers=a:1\nsecurity.protocol=SSL\n";
    for (list, versions) in [
        ("TLSv1.3", "Some([Tls13])"),
        (" TLSv1.2 , TLSv1.3 ", "Some([Tls12, Tls13])"),
        ("tlsv1.3,TLSv1.1,TLSv1,SSLv3", "Some([Tls13])"),
        ("", "None"),
    ] {
        let shown = shown(&format!("{ssl}ssl.enabled.protocols={list}\nssl.protocol=TLSv1.3\n"));
        assert!(shown.contains(&format!("versions: {versions}")), "{shown}");
    }
    assert_refused(&format!("{ssl}ssl.enabled.protocols=TLSv1.1,TLSv1"), &["'TLSv1.1,TLSv1'", "older", "TLSv1.3"]);
    assert_refused(&format!("{ssl}ssl.enabled.protocols=TLSv1.3,TLSv1.4"), &["'TLSv1.4'", "TLSv1.3 or TLSv1.2"]);
    let suites = shown(&format!("{ssl}ssl.cipher.suites=TLS_AES_256_GCM_SHA384, x"));
    assert!(suites.contains("suites: Some([\"TLS_AES_256_GCM_SHA384\", \"x\"])"), "{suites}");
}

/// A class of Java's that says who the client is is not there.
#[test]
fn classes_that_only_java_has_are_named() {
    let plain = format!(
        "{SASL}sasl.mechanism=PLAIN\nsasl.jaas.config=x.PlainLoginModule required username=alice password=x;\n"
    );
    for name in ["sasl.client.callback.handler.class", "sasl.login.class"] {
        assert_refused(&format!("{plain}{name}=com.bank.Vault"), &[name, "com.bank.Vault", "sasl.jaas.config"]);
    }
    let security = "org.apache.kafka.common.security";
    shown(&format!("{plain}sasl.login.class={security}.authenticator.DefaultLogin"));
    shown(&format!("{plain}sasl.client.callback.handler.class={security}.authenticator.SaslClientCallbackHandler"));
    // Java's own modules of PLAIN and SCRAM ask it nothing: the log says so.
    shown(&format!("{plain}sasl.login.callback.handler.class=com.bank.Vault"));
    let iam = format!("{SASL}sasl.mechanism=AWS_MSK_IAM\nsasl.jaas.config=x.IAMLoginModule required;\n");
    let amazon = "software.amazon.msk.auth.iam.IAMClientCallbackHandler";
    shown(&format!("{iam}sasl.client.callback.handler.class={amazon}"));
}

/// A class of Java's that brings tokens is not there; what would be sent without it is a token of somebody else.
#[test]
fn a_handler_that_only_java_has_is_named() {
    let bearer = format!(
        "{SASL}sasl.mechanism=OAUTHBEARER\nsasl.jaas.config=x.OAuthBearerLoginModule required \
         unsecuredLoginStringClaim_sub=alice oauth.client.id=x;\nsasl.login.callback.handler.class="
    );

    let strimzi = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler";
    assert_refused(
        &format!("{bearer}{strimzi}"),
        &[strimzi, "sasl.oauthbearer.token.endpoint.url", "sasl_oauthbearer"],
    );
    let amazon = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler";
    assert_refused(&format!("{bearer}{amazon}"), &[amazon, "AWS_MSK_IAM"]);
    let kafka = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler";
    assert_refused(&format!("{bearer}{kafka}"), &["sasl.oauthbearer.token.endpoint.url is missing"]);
    let unsecured = "org.apache.kafka.common.security.oauthbearer.internals.unsecured.\
                     OAuthBearerUnsecuredLoginCallbackHandler";
    assert!(shown(&format!("{bearer}{unsecured}")).contains("Bearer"));
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
fn stores_are_read_by_their_type() {
    let tls = "bootstrap.servers=a:1\nsecurity.protocol=SSL\n";

    for kind in ["", "ssl.truststore.type=JKS\nssl.keystore.type=jks\n", "ssl.truststore.type=PKCS12\n"] {
        let trust = format!("{tls}{kind}ssl.truststore.location=/x.jks\n");
        let identity = format!("{trust}ssl.keystore.location=/y.p12\nssl.keystore.password=hunter2\n");
        if cfg!(feature = "keystores") {
            let shown = shown(&format!("{identity}ssl.truststore.password=hunter2\nssl.key.password=hunter2"));
            assert!(shown.contains("/x.jks") && shown.contains("/y.p12") && !shown.contains("hunter2"), "{shown}");
            assert_refused(&format!("{trust}ssl.keystore.location=/y"), &["ssl.keystore.password is missing"]);
        } else {
            assert_refused(&trust, &["the feature keystores", "keytool -list -rfc", "ssl.truststore.type=PEM"]);
        }
    }
    assert_refused(&format!("{tls}ssl.truststore.location=/x\nssl.truststore.type=BCFKS"), &["'BCFKS'", "PKCS12"]);
    assert_refused(&format!("{tls}ssl.truststore.certificates=x"), &["set ssl.truststore.type=PEM"]);
    assert_refused(&format!("{tls}ssl.keystore.type=PEM\nssl.keystore.certificate.chain=x"), &["ssl.keystore.key"]);
    assert_refused(&format!("{tls}ssl.keystore.type=PEM\nssl.keystore.key=x"), &["ssl.keystore.certificate.chain"]);
    let password = format!("{tls}ssl.keystore.type=PEM\nssl.keystore.location=/x\nssl.keystore.password=hunter2");
    assert_refused(&password, &["ssl.keystore.password is set", "ssl.key.password"]);
    let name = format!("{tls}ssl.endpoint.identification.algorithm=");
    assert_refused(&format!("{name}none"), &["'none'", "https"]);
    assert!(shown(&format!("{name}HTTPS")).contains("accepts_any_name: false"));
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

#[test]
fn a_wrong_url_is_told() {
    for (text, word) in [
        ("kafka://a:1/path", "has a path"),
        ("kafka://alice@a:1", "without a password"),
        ("kafka://alice:%4@a:1", "'%'"),
        ("kafka://alice:%ff@a:1", "UTF-8"),
        ("kafka://a:1?x", "without a '='"),
        ("kafka://alice:x@a:1?sasl.mechanism=OAUTHBEARER", "OAUTHBEARER"),
        ("kafka+sssl://alice:hunter2@a:1", "neither kafka:// nor kafka+tls://"),
        ("kafka://alice:hun?ter2@a:1", "%3F"),
        // What is not known, and what is said twice.
        ("kafka://a:1?reqest.timeout.ms=1", "is it request.timeout.ms?"),
        ("kafka://a:1?linger.ms=5", "linger.ms, which is none of a client's"),
        ("kafka://a:1?hunter2=all", "a setting that is none of a client's"),
        ("kafka://a:1?bootstrap.servers=b:1", "bootstrap.servers"),
        ("kafka://a:1?url=kafka://b:1", "url"),
        ("kafka://a:1?client.id=a&client.id=b", "client.id twice"),
        // What contradicts itself.
        ("kafka://alice:hunter2@a:1?security.protocol=PLAINTEXT", "security.protocol=PLAINTEXT is without SASL"),
        ("kafka://alice:hunter2@a:1?security.protocol=SSL", "security.protocol=SSL is without SASL"),
        ("kafka://a:1?sasl.mechanism=PLAIN&security.protocol=SSL", "without SASL"),
        ("kafka+tls://a:1?security.protocol=SASL_PLAINTEXT", "asks for TLS"),
        ("kafka+tls://a:1?security.protocol=", "security.protocol is ''"),
    ] {
        let error = url(text).expect_err("a bad URL");
        assert!(error.contains(word) && !error.contains("hun"), "'{error}' lacks '{word}'");
    }
    for text in ["a:1", "PLAINTEXT://a:1", "http://a:1"] {
        assert!(Properties::from_url(text).is_none(), "{text}");
    }
}

fn of_variables(variables: &[(&str, &str)]) -> Properties {
    let owned = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Properties::from_variables(owned)
}

/// What becomes of `KRAFKA_…` variables.
fn environment(variables: &[(&str, &str)]) -> Result<String, String> {
    let builder = of_variables(variables).builder();
    builder.map(|builder| format!("{builder:?}")).map_err(|error| error.to_string())
}

#[track_caller]
fn assert_unfit(variables: &[(&str, &str)], words: &[&str]) {
    let error = environment(variables).expect_err("bad variables");
    for word in words {
        assert!(error.contains(word) && !error.contains("hunter"), "'{error}' lacks '{word}'");
    }
}

/// Wherever a URL is put by mistake.
#[test]
fn a_url_in_the_wrong_place_is_read_or_keeps_its_password() {
    let read = shown("bootstrap.servers=kafka://alice:hunter2@h:1");
    assert!(read.contains("\"h:1\"") && read.contains("alice") && !read.contains("hunter2"), "{read}");
    let shown = format!("{:?}", KafkaBuilder::new("kafak+tls://alice:hunter2@h:9092".to_owned()));
    assert!(shown.contains("kafak+tls://[hidden]@h:9092"), "{shown}");
}

#[test]
fn variables_are_properties_by_another_name() {
    let properties =
        of_variables(&[("KRAFKA_BOOTSTRAP_SERVERS", "a:1"), ("KRAFKA_CLIENT_ID", "shop"), ("PATH", "/bin")]);

    assert_eq!(properties.names().collect::<Vec<_>>(), ["bootstrap.servers", "client.id"]);
    assert_eq!(format!("{properties:?}"), r#"["bootstrap.servers", "client.id"]"#);
}

/// A URL that says nothing of TLS or a mechanism leaves both to the variables beside it.
#[cfg(feature = "tls")]
#[test]
fn a_url_takes_no_protection_away() {
    let login = [
        ("KRAFKA_SASL_MECHANISM", "SCRAM-SHA-512"),
        ("KRAFKA_SASL_JAAS_CONFIG", "x.ScramLoginModule required username=alice password=hunter2;"),
        ("KRAFKA_SECURITY_PROTOCOL", "SASL_SSL"),
    ];
    for place in ["KRAFKA_URL", "KRAFKA_BOOTSTRAP_SERVERS"] {
        let shown = environment(&[&[(place, "kafka://a:1")], &login[..]].concat()).expect("good variables");
        assert!(shown.contains("Tls {") && shown.contains("Sha512") && !shown.contains("hunter"), "{shown}");

        let user = (place, "kafka://bob:hunter3@a:1");
        let shown = environment(&[user, login[0], login[2]]).expect("good variables");
        assert!(shown.contains("Tls {") && shown.contains("Sha512") && shown.contains("bob"), "{shown}");
        assert_unfit(&[&[user][..], &login].concat(), &[place, "has a user", "sasl.jaas.config"]);
    }
}

/// What is said twice, and not alike, is not guessed.
#[test]
fn a_url_and_what_is_beside_it_do_not_contradict_each_other() {
    let user = ("KRAFKA_URL", "kafka://alice:hunter2@a:1");
    let tls = ("KRAFKA_URL", "kafka+tls://a:1");

    assert_unfit(&[user, ("KRAFKA_SECURITY_PROTOCOL", "PLAINTEXT")], &["KRAFKA_URL: ", "without SASL"]);
    assert_unfit(&[tls, ("KRAFKA_SECURITY_PROTOCOL", "PLAINTEXT")], &["KRAFKA_URL: ", "asks for TLS"]);
    assert_unfit(&[user, ("KRAFKA_BOOTSTRAP_SERVERS", "b:1")], &["KRAFKA_URL: ", "bootstrap.servers", "another"]);
    let twice = [("KRAFKA_URL", "kafka://a:1?client.id=a"), ("KRAFKA_CLIENT_ID", "b")];
    assert_unfit(&twice, &["client.id", "another beside the URL"]);
    let alike = [("KRAFKA_URL", "kafka://a:1?client.id=a"), ("KRAFKA_CLIENT_ID", "a")];
    assert!(environment(&alike).is_ok());
}

#[test]
fn a_variable_that_is_wrong_is_named() {
    let servers = ("KRAFKA_BOOTSTRAP_SERVERS", "a:1");
    let url = ("KRAFKA_URL", "kafka://a:1?request.timeout.ms=soon");

    assert_unfit(&[], &["neither KRAFKA_BOOTSTRAP_SERVERS nor KRAFKA_URL is set"]);
    assert_unfit(&[servers, ("KRAFKA_REQUEST_TIMEOUT_MS", "soon")], &["KRAFKA_REQUEST_TIMEOUT_MS is 'soon'"]);
    assert_unfit(&[url], &["KRAFKA_URL: request.timeout.ms is 'soon'"]);
    assert_unfit(&[("KRAFKA_URL", "http://a:1")], &["KRAFKA_URL: ", "neither kafka:// nor"]);
    assert_unfit(
        &[servers, ("KRAFKA_SECURITY_PROTOCL", "SASL_SSL")],
        &["PROTOCL", "is KRAFKA_SECURITY_PROTOCOL meant"],
    );
    assert_unfit(&[servers, ("KRAFKA_REQEST_TIMEOUT_MS", "1")], &["is KRAFKA_REQUEST_TIMEOUT_MS meant"]);
    assert_unfit(&[servers, ("KRAFKA_SSL_X", "x")], &["KRAFKA_SSL_X has no effect"]);
    // Kubernetes has these for a service of this name, and an application may have its own.
    assert!(environment(&[servers, ("KRAFKA_SERVICE_HOST", "10.0.0.1"), ("KRAFKA_TOPIC", "orders")]).is_ok());
}
