-- How many bytes the events of each tenant take, kept in the transactions that append and erase them.
CREATE TABLE tenant_bytes (
    tenant TEXT    NOT NULL PRIMARY KEY,
    bytes  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO tenant_bytes (tenant, bytes)
SELECT tenant, sum(length(CAST(body AS BLOB))) FROM journal GROUP BY tenant;
