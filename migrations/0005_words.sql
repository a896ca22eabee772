-- What was asked by the request that decided, where it was said in the conversation without a name: so a
-- client that sends it again is known after a restart. Kept from the journal's `decided`, in the same
-- transaction.
ALTER TABLE approvals ADD COLUMN asked TEXT;

CREATE INDEX approvals_asked ON approvals (decided) WHERE asked IS NOT NULL;
