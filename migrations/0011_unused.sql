-- This number is left for another table that is being added; it changes nothing.
SELECT 1;
