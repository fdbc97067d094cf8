CREATE TABLE numbers (n bigint PRIMARY KEY);
INSERT INTO numbers SELECT generate_series(1, 5);
-- Long enough that a test can interrupt the seeding.
SELECT pg_sleep(1);
