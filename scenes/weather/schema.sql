-- Cities that a tenant has added to those that come with the scene.
CREATE TABLE IF NOT EXISTS weather_cities (
    tenant          TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,              -- doing it twice is doing it once
    folded          TEXT NOT NULL,              -- the name as it is compared: no accents, no case
    name            TEXT NOT NULL,
    country         TEXT NOT NULL DEFAULT '',   -- ISO 3166-1, two letters, or empty
    latitude        REAL NOT NULL,              -- degrees north
    longitude       REAL NOT NULL,              -- degrees east
    added_by        TEXT NOT NULL,
    added_at        TEXT NOT NULL,              -- RFC 3339
    PRIMARY KEY (tenant, idempotency_key),
    UNIQUE (tenant, folded, country)
) STRICT;
