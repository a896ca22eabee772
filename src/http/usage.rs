//! `GET /api/usage`: calls, tokens and cost of the caller's tenant, from the journal, and the bytes that it has
//! stored.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::app::App;
use super::principal::RequestPrincipal;
use super::problem::Problem;
use super::query::QueryParameters;

/// Maximum number of days in a report.
const MAX_DAYS: i64 = 400;

/// The days of the report.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsageQuery {
    /// The first day, `YYYY-MM-DD`. Default: 29 days before the last.
    #[param(format = "date")]
    pub(crate) from: Option<String>,
    /// The last day, `YYYY-MM-DD`. Default: today.
    #[param(format = "date")]
    pub(crate) to: Option<String>,
}

/// Usage and cost of models.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct UsageReport {
    /// The first day.
    pub(crate) from: String,
    /// The last day.
    pub(crate) to: String,
    /// The time zone of the days.
    pub(crate) time_zone: String,
    /// Sorted by day, model and purpose.
    pub(crate) rows: Vec<UsageView>,
    /// Total cost in US dollars.
    pub(crate) cost_usd: f64,
    /// Bytes of the tenant's events and documents that are stored now, whatever the days. `store.max_tenant_bytes` limits
    /// them.
    #[serde(default)]
    pub(crate) stored_bytes: u64,
}

/// Usage of one model for one purpose on one day.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct UsageView {
    /// The day, `YYYY-MM-DD`.
    pub(crate) day: String,
    /// The model's configured name.
    pub(crate) model: String,
    /// The purpose of the calls.
    pub(crate) purpose: String,
    /// Number of calls.
    pub(crate) calls: u64,
    /// Prompt tokens, including cached ones.
    pub(crate) input_tokens: u64,
    /// Prompt tokens from the provider's cache.
    pub(crate) cached_input_tokens: u64,
    /// Completion tokens.
    pub(crate) output_tokens: u64,
    /// Cost in US dollars.
    pub(crate) cost_usd: f64,
}

fn parse_day(name: &str, text: Option<&str>) -> Result<Option<jiff::civil::Date>, Problem> {
    text.map(|text| {
        text.parse().map_err(|_| {
            let detail = format!("`{name}` is not a date: write YYYY-MM-DD");
            Problem::unprocessable("request.query", detail)
        })
    })
    .transpose()
}

/// Returns calls, tokens and cost by day, model and purpose.
#[utoipa::path(get, path = "/api/usage", tag = "operations", params(UsageQuery),
    responses((status = 200, body = UsageReport), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn usage(
    app: web::Data<App>,
    who: RequestPrincipal,
    QueryParameters(query): QueryParameters<UsageQuery>,
) -> Result<HttpResponse, Problem> {
    who.authorize_usage()?;
    let zone = app.engine.zone();
    let bad = |detail: String| Problem::unprocessable("request.query", detail);
    let today = jiff::Timestamp::now().to_zoned(zone.clone()).date();
    let to = parse_day("to", query.to.as_deref())?.unwrap_or(today);
    let default = to.saturating_sub(jiff::Span::new().days(29));
    let from = parse_day("from", query.from.as_deref())?.unwrap_or(default);
    let days = from.duration_until(to).as_hours() / 24;
    if !(0..=MAX_DAYS).contains(&days) {
        return Err(bad(format!("`from` must be at most {MAX_DAYS} days before `to`, and not after it")));
    }
    let at = |day: jiff::civil::Date| day.to_zoned(zone.clone()).map(|at| at.timestamp());
    let outside = |_| bad("`from` and `to` must be valid dates".to_owned());
    let since = at(from).map_err(outside)?;
    let until = at(to.tomorrow().map_err(outside)?).map_err(outside)?;
    let rows = app.engine.store().usage_breakdown(&who.tenant, Some(since), Some(until), &zone).await?;
    let nano: u64 = rows.iter().fold(0, |sum, row| sum.saturating_add(row.cost_nano_usd));
    let usd = |nano: u64| nano as f64 / 1e9;
    let rows = rows
        .into_iter()
        .map(|row| UsageView {
            day: row.day.to_string(),
            model: row.model,
            purpose: row.purpose,
            calls: row.calls,
            input_tokens: row.input_tokens,
            cached_input_tokens: row.cached_input_tokens,
            output_tokens: row.output_tokens,
            cost_usd: usd(row.cost_nano_usd),
        })
        .collect();
    let time_zone = zone.iana_name().unwrap_or("UTC").to_owned();
    let stored_bytes = app.engine.store().tenant_bytes(&who.tenant).await?;
    let (from, to, cost_usd) = (from.to_string(), to.to_string(), usd(nano));
    let report = UsageReport { from, to, time_zone, rows, cost_usd, stored_bytes };
    Ok(HttpResponse::Ok().json(report))
}
