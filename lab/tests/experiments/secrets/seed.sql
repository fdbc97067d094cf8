CREATE TABLE notes (owner text, text text);
INSERT INTO notes VALUES ('zq-literal-zq', 'zq-row-zq'), ('zq-parameter-zq', 'zq-row-zq');
SELECT pg_sleep(0);
