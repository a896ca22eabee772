//! The cities that a tenant has added, in the table of `schema.sql`.

use proscenium::tools::{ToolContext, ToolError};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::gazetteer::fold;

/// Most cities a tenant may add.
const MOST: i64 = 1_000;

/// A city that a tenant has added.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnCity {
    /// As it was given.
    pub name: String,
    /// ISO 3166-1, two letters; empty where none was given.
    pub country: String,
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
}

impl sqlx::FromRow<'_, SqliteRow> for OwnCity {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            name: row.try_get("name")?,
            country: row.try_get("country")?,
            latitude: row.try_get("latitude")?,
            longitude: row.try_get("longitude")?,
        })
    }
}

/// All cities the tenant has added, by name.
pub async fn all(context: &ToolContext) -> Result<Vec<OwnCity>, ToolError> {
    // Not more than `MOST`: `add` refuses the next one. A bound in the statement would have it prepared anew for each call.
    let cities = sqlx::query_as(
        "SELECT name, country, latitude, longitude FROM weather_cities WHERE tenant = ?1 ORDER BY folded",
    )
    .bind(context.principal.tenant.as_str())
    .fetch_all(context.store.pool())
    .await?;
    Ok(cities)
}

/// The city that an earlier call with the same key stored.
async fn earlier(
    connection: &mut SqliteConnection,
    tenant: &str,
    key: &str,
) -> Result<Option<OwnCity>, sqlx::Error> {
    sqlx::query_as(
        "SELECT name, country, latitude, longitude FROM weather_cities WHERE tenant = ?1 AND idempotency_key = ?2",
    )
    .bind(tenant)
    .bind(key)
    .fetch_optional(connection)
    .await
}

/// Stores the city under the call's idempotency key. The city of an earlier call with the same key is
/// given back as it was stored.
pub async fn add(context: &ToolContext, city: OwnCity) -> Result<OwnCity, ToolError> {
    let Some(key) = context.idempotency_key.as_deref() else {
        return Err(ToolError::failed(
            "weather.no_key",
            "a city is added under an idempotency key, and none was given",
        ));
    };
    let tenant = context.principal.tenant.as_str();
    let folded = fold(&city.name);
    let mut transaction = context.store.pool().begin_with("BEGIN IMMEDIATE").await?;

    if let Some(earlier) = earlier(&mut transaction, tenant, key).await? {
        return Ok(earlier);
    }

    let (stored, same): (i64, i64) = sqlx::query_as(
        "SELECT COUNT(*), COUNT(*) FILTER (WHERE folded = ?2 AND country = ?3) FROM weather_cities WHERE tenant = ?1",
    )
    .bind(tenant)
    .bind(&folded)
    .bind(&city.country)
    .fetch_one(&mut *transaction)
    .await?;
    if same > 0 {
        let message = format!("{} is already known; ask for its forecast", city.name);
        return Err(ToolError::refused("weather.city_known", message));
    }
    if stored >= MOST {
        let message = format!("{MOST} cities have been added and no more can be");
        return Err(ToolError::refused("weather.too_many_cities", message));
    }

    sqlx::query(
        "INSERT INTO weather_cities \
         (tenant, idempotency_key, folded, name, country, latitude, longitude, added_by, added_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )
    .bind(tenant)
    .bind(key)
    .bind(&folded)
    .bind(&city.name)
    .bind(&city.country)
    .bind(city.latitude)
    .bind(city.longitude)
    .bind(&context.principal.user)
    .bind(context.now.timestamp().to_string())
    .execute(&mut *transaction)
    .await?;
    // Whether a commit that failed took effect is not known.
    transaction.commit().await.map_err(|error| {
        ToolError::unknown(
            "weather.commit",
            format!("whether {} was stored is not known: {error}", city.name),
        )
    })?;
    Ok(city)
}
