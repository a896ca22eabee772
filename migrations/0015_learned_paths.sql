-- The flow through which a learned plan is a path; NULL for a plan over scenes.
ALTER TABLE learned_plans ADD COLUMN flow TEXT;
