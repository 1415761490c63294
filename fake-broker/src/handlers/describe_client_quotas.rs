//! DescribeClientQuotas (48): the quotas of those who fit a filter, in the order of whom they are for.

use krafka_protocol::api::describe_client_quotas::{
    ComponentData, DescribeClientQuotasRequest, DescribeClientQuotasResponse, EntityData, EntryData, ValueData,
};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::quotas::{Entity, Name, entities};
use crate::security::acls::Operation;
use crate::state::State;

/// How a name is compared.
const EXACT: i8 = 0;
const DEFAULT: i8 = 1;
const SPECIFIED: i8 = 2;

/// The conditions on user, client id and address.
type Filter<'a> = [Option<&'a ComponentData>; 3];

pub(crate) fn handle(
    state: &State,
    cx: &Context,
    request: &DescribeClientQuotasRequest,
) -> Outcome<DescribeClientQuotasResponse> {
    let filter = match cx.cluster_error(state, Operation::DescribeConfigs) {
        Some(code) => Err((code, None)),
        None => parse(request).map_err(|(code, text)| (code, Some(Str::from(text)))),
    };
    let filter = match filter {
        Ok(filter) => filter,
        Err((code, text)) => {
            return Outcome::Reply(DescribeClientQuotasResponse {
                error_code: code.0,
                error_message: text,
                entries: None,
                ..DescribeClientQuotasResponse::default()
            });
        }
    };
    let found = state.quotas.iter().filter(|(entity, _)| matches(&filter, entity, request.strict));
    let entries = found.map(|(entity, limits)| EntryData {
        entity: entity
            .parts()
            .map(|(kind, name)| EntityData { entity_type: Str::from_static(kind), entity_name: name.clone() })
            .collect(),
        values: limits.iter().map(|(key, value)| ValueData { key: key.clone(), value: *value }).collect(),
    });
    Outcome::Reply(DescribeClientQuotasResponse {
        entries: Some(entries.collect()),
        // As the schema has it: Kafka sets none.
        error_message: Some(Str::default()),
        ..DescribeClientQuotasResponse::default()
    })
}

fn parse(request: &DescribeClientQuotasRequest) -> Result<Filter<'_>, (ErrorCode, String)> {
    let invalid = |text: String| Err((ErrorCode::INVALID_REQUEST, text));
    let mut filter: Filter<'_> = [None; 3];
    for component in &request.components {
        let kind = &component.entity_type;
        let place = match &**kind {
            entities::USER => 0,
            entities::CLIENT_ID => 1,
            entities::IP => 2,
            "" => return invalid("Invalid empty entity type.".to_owned()),
            _ => {
                return Err((ErrorCode::UNSUPPORTED_VERSION, format!("Unsupported entity type {kind}")));
            }
        };
        let is_named = component.r#match.is_some();
        match component.match_type {
            EXACT if is_named => {}
            EXACT => return invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.".to_owned()),
            DEFAULT if is_named => {
                return invalid("Request specified MATCH_TYPE_DEFAULT, but also specified a match string.".to_owned());
            }
            SPECIFIED if is_named => {
                return invalid(
                    "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.".to_owned(),
                );
            }
            DEFAULT | SPECIFIED => {}
            other => return invalid(format!("Unknown match type {other}")),
        }
        if filter[place].replace(component).is_some() {
            return invalid(format!("Entity type {kind} cannot appear more than once in the filter."));
        }
    }
    let [user, client_id, ip] = filter;
    if ip.is_some() && (user.is_some() || client_id.is_some()) {
        return invalid(
            "Invalid entity filter component combination. IP filter component should not be used with user or \
             clientId filter component."
                .to_owned(),
        );
    }
    Ok(filter)
}

fn matches(filter: &Filter<'_>, entity: &Entity, is_strict: bool) -> bool {
    let parts = [&entity.user, &entity.client_id, &entity.ip];
    filter.iter().zip(parts).all(|(component, part)| match (component, part) {
        (None, Some(_)) => !is_strict,
        (None, None) => true,
        (Some(_), None) => false,
        (Some(component), Some(name)) => is_meant(component, name),
    })
}

fn is_meant(component: &ComponentData, name: &Name) -> bool {
    match component.match_type {
        EXACT => *name == component.r#match,
        DEFAULT => name.is_none(),
        // Any, the default too.
        _ => true,
    }
}
