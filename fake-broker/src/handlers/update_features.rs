//! UpdateFeatures: raises and lowers the levels of features, all of them or none.
//!
//! Kafka 3.9 judges each feature on its own instead.

use krafka_protocol::api::update_features::UpdatableFeatureResult;
use krafka_protocol::{ErrorCode, Str, UpdateFeaturesRequest, UpdateFeaturesResponse};

use crate::context::{Context, Outcome};
use crate::faults::KafkaVersion;
use crate::features::Update;
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

/// Up to this version, a level is lowered with a flag; and there is a result for each feature.
const LAST_WITH_FLAG: i16 = 0;
const LAST_WITH_RESULTS: i16 = 1;

const SAFE_DOWNGRADE: i8 = 2;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &UpdateFeaturesRequest,
) -> Outcome<UpdateFeaturesResponse> {
    if let Some(code) = cx.cluster_error(state, Operation::Alter) {
        return Outcome::Reply(failed(code, Some(words(code).to_owned())));
    }
    let updates: Vec<_> = request
        .feature_updates
        .iter()
        .map(|update| Update {
            feature: &update.feature,
            level: update.max_version_level,
            upgrade_type: if cx.version <= LAST_WITH_FLAG && update.allow_downgrade {
                SAFE_DOWNGRADE
            } else {
                update.upgrade_type
            },
        })
        .collect();
    let checked: Vec<_> = updates.iter().map(|update| state.check_feature(update, &updates)).collect();
    let each_alone = state.cluster_version() < KafkaVersion::V4_0;
    if !each_alone && let Some(Err(reason)) = checked.iter().find(|checked| checked.is_err()) {
        let text = format!("The update failed for all features since the following feature had an error: {reason}");
        return Outcome::Reply(failed(ErrorCode::INVALID_UPDATE_VERSION, Some(text)));
    }
    let mut response = failed(ErrorCode::NONE, each_alone.then(String::new));
    for (update, checked) in updates.iter().zip(checked) {
        let (code, message) = match checked {
            Ok(feature) => {
                if let Some(feature) = feature.filter(|_| !request.validate_only) {
                    state.set_feature(&feature, update.level);
                }
                // Since 4.0 Kafka writes the name of the code where a message would be.
                (ErrorCode::NONE, (!each_alone).then(|| "NONE".to_owned()))
            }
            Err(reason) => (ErrorCode::INVALID_UPDATE_VERSION, Some(reason)),
        };
        if cx.version <= LAST_WITH_RESULTS {
            response.results.push(UpdatableFeatureResult {
                feature: update.feature.into(),
                error_code: code.0,
                error_message: message.map(Str::from),
            });
        }
    }
    Outcome::Reply(response)
}

fn failed(code: ErrorCode, message: Option<String>) -> UpdateFeaturesResponse {
    UpdateFeaturesResponse {
        error_code: code.0,
        error_message: message.map(Str::from),
        ..UpdateFeaturesResponse::default()
    }
}
