-- What operators have switched off or on again: every change, the newest of a name is in force.
CREATE TABLE switches (
    id     INTEGER PRIMARY KEY,
    -- 'tool' (Scene.Tool), 'model' or 'tenant'
    kind   TEXT    NOT NULL CHECK (kind IN ('tool', 'model', 'tenant')),
    name   TEXT    NOT NULL,
    off    INTEGER NOT NULL CHECK (off IN (0, 1)),
    reason TEXT    NOT NULL,
    by     TEXT    NOT NULL,
    at     INTEGER NOT NULL
) STRICT;

CREATE INDEX switches_by_name ON switches (kind, name, id);
