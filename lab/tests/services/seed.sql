-- Four authors, twelve posts, three comments each.
CREATE TABLE authors (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE posts (
    id int PRIMARY KEY,
    author int NOT NULL REFERENCES authors,
    title text NOT NULL,
    seen bigint NOT NULL DEFAULT 0
);
CREATE TABLE comments (id int PRIMARY KEY, post int NOT NULL REFERENCES posts, text text NOT NULL);
INSERT INTO authors SELECT id, 'author ' || id FROM generate_series(1, 4) id;
INSERT INTO posts SELECT id, 1 + id % 4, 'post ' || id FROM generate_series(1, 12) id;
INSERT INTO comments SELECT id, 1 + id % 12, 'comment ' || id FROM generate_series(1, 36) id;
