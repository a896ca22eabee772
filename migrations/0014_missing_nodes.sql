-- The events that suggest nodes which flows lack, by tenant and time: what the documents of flows list. The condition is
-- word for word that of the query, which SQLite asks for before it uses the index.
CREATE INDEX journal_missing_nodes ON journal (tenant, at) WHERE body GLOB '{"type":"flow_planned"*,"missing_node":{*';
