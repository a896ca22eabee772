-- The events that tell what questions to models cost, by tenant and time: what reports are made from.
-- The condition is word for word that of the queries, which SQLite asks for before it uses the index.
CREATE INDEX journal_costs ON journal (tenant, at) WHERE
    (body GLOB '{"type":"model_replied"*' OR body GLOB '{"type":"model_failed"*'
    OR body GLOB '{"type":"summarised"*' OR body GLOB '{"type":"summary_failed"*');
