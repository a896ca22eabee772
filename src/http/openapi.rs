//! `GET /api/openapi.json`: the routes as OpenAPI 3.1.

use actix_web::HttpResponse;
use utoipa::openapi::RefOr;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::{
    approvals, chat, documents, facts, flows, learned, operations, planning, plans, runs, scenes, sessions,
    usage, v1,
};

#[derive(OpenApi)]
#[openapi(
    info(title = "Proscenium", description = "A multi-agent server: plans requests across several scenes, carries them out once and answers them."),
    paths(
        chat::chat,
        planning::plan,
        flows::list,
        flows::one,
        scenes::list,
        scenes::one,
        runs::list,
        runs::one,
        runs::explain,
        runs::events,
        runs::cancel,
        runs::resume,
        plans::create,
        plans::list,
        plans::shown::one,
        plans::erase,
        plans::control::approve,
        plans::control::modify,
        plans::control::cancel,
        plans::control::rate,
        plans::control::resume,
        approvals::list,
        approvals::one,
        approvals::decide,
        sessions::list,
        sessions::one,
        sessions::erase,
        facts::list,
        facts::state,
        documents::add,
        documents::list,
        documents::one,
        documents::content,
        documents::delete,
        learned::list,
        learned::one,
        learned::delete,
        usage::usage,
        serve,
        operations::metrics,
        operations::healthz,
        operations::readyz,
        v1::completions,
        v1::models,
        v1::model,
    ),
    modifiers(&KeySecurity, &ResponseDescriptions, &AbsentValues),
    security((), ("key" = []))
)]
struct ApiDocument;

/// Describes how keys are sent.
struct KeySecurity;

impl Modify for KeySecurity {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let key = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        components.add_security_scheme("key", key);
        for (path, item) in &mut document.paths.paths {
            let methods = [&mut item.get, &mut item.post, &mut item.delete];
            if WITHOUT_KEY.contains(&path.as_str()) {
                continue;
            }
            for operation in methods.into_iter().flatten() {
                operation.parameters.get_or_insert_default().push(user_header().into());
            }
        }
    }
}

/// Describes the responses that their routes do not: OpenAPI requires a description of each.
struct ResponseDescriptions;

impl Modify for ResponseDescriptions {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        for item in document.paths.paths.values_mut() {
            let methods = [&mut item.get, &mut item.post, &mut item.delete];
            for operation in methods.into_iter().flatten() {
                for (status, response) in &mut operation.responses.responses {
                    if let RefOr::T(response) = response
                        && response.description.is_empty()
                    {
                        let text =
                            if status.starts_with('2') { "success" } else { "an error; `code` names it" };
                        text.clone_into(&mut response.description);
                    }
                }
            }
        }
    }
}

/// Optional parameters and bodies are left out, and cannot be null: clients that are generated from the document would
/// send the text `null` or `None`.
struct AbsentValues;

impl Modify for AbsentValues {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        for item in document.paths.paths.values_mut() {
            let methods = [&mut item.get, &mut item.post, &mut item.delete];
            for operation in methods.into_iter().flatten() {
                for parameter in operation.parameters.iter_mut().flatten() {
                    if let RefOr::T(parameter) = parameter {
                        remove_null(&mut parameter.schema);
                    }
                }
                if let Some(RefOr::T(body)) = &mut operation.request_body {
                    for content in body.content.values_mut() {
                        if let RefOr::T(content) = content {
                            remove_null(&mut content.schema);
                        }
                    }
                }
            }
        }
    }
}

/// Removes null from the types or alternatives of a schema.
fn remove_null(schema: &mut Option<RefOr<Schema>>) {
    let is_null = |alternative: &RefOr<Schema>| {
        let RefOr::T(Schema::Object(object)) = alternative else { return false };
        object.schema_type == SchemaType::Type(Type::Null)
    };
    match schema {
        Some(RefOr::T(Schema::Object(object))) => {
            let SchemaType::Array(types) = &mut object.schema_type else { return };
            types.retain(|kind| *kind != Type::Null);
            if let [only] = types.as_slice() {
                object.schema_type = SchemaType::Type(only.clone());
            }
        }
        Some(RefOr::T(Schema::OneOf(choice))) => {
            choice.items.retain(|alternative| !is_null(alternative));
            if choice.items.len() == 1 {
                *schema = choice.items.pop();
            }
        }
        _ => {}
    }
}

/// Routes without authentication.
const WITHOUT_KEY: [&str; 4] = ["/api/openapi.json", "/healthz", "/readyz", "/metrics"];

fn user_header() -> Parameter {
    ParameterBuilder::new()
        .name("X-User-Id")
        .parameter_in(ParameterIn::Header)
        .description(Some(
            "with a key of the role `service`: the end user on whose behalf the request is made, 1 to 128 printable \
             characters; other keys may only name their own user (403 `auth.user_header`)",
        ))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}

/// The OpenAPI document of this server.
pub fn openapi_document() -> utoipa::openapi::OpenApi {
    ApiDocument::openapi()
}

/// Returns this document.
#[utoipa::path(get, path = "/api/openapi.json", operation_id = "openapi", tag = "operations", 
    responses((status = 200, description = "OpenAPI 3.1", body = Value, content_type = "application/json")))]
pub(crate) async fn serve() -> HttpResponse {
    HttpResponse::Ok().json(openapi_document())
}
