//! `sasl.*`: who the client is.

use super::Properties;
use super::apply::unknown;
use super::jaas::LoginModule;
use super::unsecured::Unsecured;
#[cfg(not(feature = "aws-config"))]
use crate::auth::AwsEnvironment;
#[cfg(feature = "aws-config")]
use crate::auth::AwsSdk;
use crate::kafka_builder::KafkaBuilder;

/// The mechanisms that there are, for errors about others.
const SERVED: &str = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or AWS_MSK_IAM";

/// # Errors
/// What is wrong, in words that begin with the property's name.
pub(super) fn log_in(builder: KafkaBuilder, properties: &Properties) -> Result<KafkaBuilder, String> {
    // Kerberos takes its login module from a file of the JVM as a rule, so that its absence is not what is wrong.
    let mechanism = match properties.get("sasl.mechanism") {
        Some(served @ ("PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512" | "OAUTHBEARER" | "AWS_MSK_IAM")) => served,
        Some("GSSAPI") => {
            return Err(format!("sasl.mechanism is GSSAPI (Kerberos), which is not served: give {SERVED}"));
        }
        Some(other) => return Err(unknown("sasl.mechanism", other, SERVED)),
        None => {
            return Err(format!(
                "sasl.mechanism is missing, and Java's default, GSSAPI (Kerberos), is not served: give {SERVED}"
            ));
        }
    };
    judge_classes(mechanism, properties)?;
    let jaas = properties.get("sasl.jaas.config").ok_or("sasl.jaas.config is missing: it says who the client is")?;
    let wrong = |why| format!("sasl.jaas.config {why}");
    let module = LoginModule::read(jaas).map_err(wrong)?;
    match (mechanism, module.class.as_str()) {
        ("PLAIN", "PlainLoginModule") => {
            let (user, password) = (module.required("username"), module.required("password"));
            Ok(builder.sasl_plain(user.map_err(wrong)?, password.map_err(wrong)?))
        }
        ("SCRAM-SHA-256" | "SCRAM-SHA-512", "ScramLoginModule") => {
            let user = module.required("username").map_err(wrong)?;
            let password = module.required("password").map_err(wrong)?;
            let is_token = module.option("tokenauth").is_some_and(|value| value.eq_ignore_ascii_case("true"));
            Ok(match (mechanism, is_token) {
                ("SCRAM-SHA-256", false) => builder.sasl_scram_sha256(user, password),
                ("SCRAM-SHA-256", true) => builder.sasl_delegation_token_sha256(user, password),
                (_, false) => builder.sasl_scram_sha512(user, password),
                (_, true) => builder.sasl_delegation_token(user, password),
            })
        }
        ("OAUTHBEARER", "OAuthBearerLoginModule") => match properties.get("sasl.oauthbearer.token.endpoint.url") {
            Some(url) => by_endpoint(builder, properties, &module, url),
            None => Ok(builder.sasl_oauthbearer(Unsecured::new(&module).map_err(wrong)?)),
        },
        ("AWS_MSK_IAM", "IAMLoginModule") => iam(builder, &module).map_err(wrong),
        _ => Err(wrong(format!("names {}, which is not the login module of {mechanism}", module.shown_class()))),
    }
}

/// Java's module has Amazon's SDK find the keys.
fn iam(builder: KafkaBuilder, module: &LoginModule) -> Result<KafkaBuilder, String> {
    // How often Amazon's SDK tries, and whether it logs who it is, changes nothing of who it is.
    // Before the profile: the feature, which that needs, makes up for none of these.
    if let Some((name, _)) = module
        .options_after("aws")
        .find(|(name, _)| !matches!(*name, "ProfileName" | "DebugCreds" | "MaxRetries" | "MaxBackOffTimeMs"))
    {
        return Err(format!(
            "has the option 'aws{name}', which is not known: name a profile with awsProfileName (with the feature \
             aws-config), which may assume a role, or give a provider to sasl_aws_msk_iam"
        ));
    }
    by_sdk(builder, module.option("awsProfileName"))
}

#[cfg(feature = "aws-config")]
fn by_sdk(builder: KafkaBuilder, profile: Option<&str>) -> Result<KafkaBuilder, String> {
    Ok(builder.sasl_aws_msk_iam(profile.map_or_else(AwsSdk::chain, AwsSdk::profile)))
}

/// Without it, the keys are in the environment, or nowhere.
#[cfg(not(feature = "aws-config"))]
fn by_sdk(builder: KafkaBuilder, profile: Option<&str>) -> Result<KafkaBuilder, String> {
    match profile {
        None => Ok(builder.sasl_aws_msk_iam(AwsEnvironment)),
        Some(_) => Err("has the option 'awsProfileName', for which the AWS SDK is needed: build krafka with the \
                        feature aws-config, leave it out to take the keys from the environment, or give a provider to \
                        sasl_aws_msk_iam"
            .to_owned()),
    }
}

/// The classes that Java asks who the client is. One of its own is done without here; what another one does nobody here
/// can know, and to go on without it would authenticate as somebody else.
fn judge_classes(mechanism: &str, properties: &Properties) -> Result<(), String> {
    const OF_LOGIN: &[&str] = &["DefaultLogin", "OAuthBearerRefreshingLogin"];
    const OF_CLIENT: &[&str] = &[
        "IAMClientCallbackHandler",
        "IAMOAuthBearerSaslClientCallbackHandler",
        "OAuthBearerSaslClientCallbackHandler",
        "SaslClientCallbackHandler",
    ];
    for (name, known) in [("sasl.login.class", OF_LOGIN), ("sasl.client.callback.handler.class", OF_CLIENT)] {
        let other = properties.get(name).filter(|path| !known.contains(&path.rsplit('.').next().unwrap_or_default()));
        if let Some(path) = other {
            return Err(format!(
                "{name} names {path}, which only Java has: say who the client is in sasl.jaas.config, or by the \
                 builder's sasl_… setters"
            ));
        }
    }
    if mechanism == "OAUTHBEARER" {
        return judge_handler(properties);
    }
    if let Some(path) = properties.get("sasl.login.callback.handler.class") {
        // Java's own modules of these mechanisms ask it nothing.
        tracing::warn!(
            sasl.mechanism = mechanism,
            class = path,
            "the property sasl.login.callback.handler.class has no effect with this mechanism"
        );
    }
    Ok(())
}

/// Java asks this class for tokens. One that is not its own does something that nobody here can know, and to go on
/// without it would authenticate as somebody else.
fn judge_handler(properties: &Properties) -> Result<(), String> {
    let Some(path) = properties.get("sasl.login.callback.handler.class") else { return Ok(()) };
    let remedy = match path.rsplit('.').next().unwrap_or_default() {
        "OAuthBearerUnsecuredLoginCallbackHandler" => return Ok(()),
        "OAuthBearerLoginCallbackHandler" => match properties.get("sasl.oauthbearer.token.endpoint.url") {
            Some(_) => return Ok(()),
            None => {
                return Err("sasl.oauthbearer.token.endpoint.url is missing: it says where tokens come from".to_owned());
            }
        },
        "IAMOAuthBearerLoginCallbackHandler" => {
            "set sasl.mechanism=AWS_MSK_IAM with IAMLoginModule, or take sasl_aws_msk_iam"
        }
        _ => {
            "set sasl.oauthbearer.token.endpoint.url with sasl.oauthbearer.client.credentials.* instead, or take Oidc, \
             or give a provider of your own to sasl_oauthbearer"
        }
    };
    Err(format!("sasl.login.callback.handler.class names {path}, which only Java has: {remedy}"))
}

#[cfg(feature = "oidc")]
fn by_endpoint(
    builder: KafkaBuilder,
    properties: &Properties,
    module: &LoginModule,
    url: &str,
) -> Result<KafkaBuilder, String> {
    Ok(builder.sasl_oauthbearer(super::oidc::provider(properties, module, url)?))
}

#[cfg(not(feature = "oidc"))]
fn by_endpoint(_: KafkaBuilder, _: &Properties, _: &LoginModule, _: &str) -> Result<KafkaBuilder, String> {
    Err("sasl.oauthbearer.token.endpoint.url is set: build krafka with the feature oidc".to_owned())
}
