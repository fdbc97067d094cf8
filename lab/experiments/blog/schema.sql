CREATE TABLE authors (
    id   bigint PRIMARY KEY,
    name text NOT NULL
);

CREATE TABLE tags (
    id   bigint PRIMARY KEY,
    slug text NOT NULL UNIQUE,
    name text NOT NULL
);

CREATE TABLE posts (
    id         bigint PRIMARY KEY,
    author_id  bigint NOT NULL REFERENCES authors,
    slug       text NOT NULL UNIQUE,
    title      text NOT NULL,
    summary    text NOT NULL,
    body       text NOT NULL,
    created_at timestamp NOT NULL
);

CREATE TABLE post_tags (
    post_id bigint NOT NULL REFERENCES posts,
    tag_id  bigint NOT NULL REFERENCES tags,
    PRIMARY KEY (post_id, tag_id)
);

CREATE TABLE comments (
    id         bigint PRIMARY KEY,
    post_id    bigint NOT NULL REFERENCES posts,
    author     text NOT NULL,
    body       text NOT NULL,
    created_at timestamp NOT NULL
);

CREATE INDEX posts_newest ON posts (created_at DESC, id DESC);
CREATE INDEX post_tags_of_tag ON post_tags (tag_id, post_id);
CREATE INDEX comments_of_post ON comments (post_id, created_at, id);
