-- 10 authors, 30 tags, 1,000 posts, 2,600 post-tag links, 10,000 comments; the same rows every time.
-- No character that template engines escape differently stands in any text.

CREATE FUNCTION pg_temp.words(seed bigint, length bigint) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(w.list[1 + (seed * n + seed / 31 + n * n * 3) % array_length(w.list, 1)], ' ' ORDER BY n)
    FROM (SELECT ARRAY[
        'amber', 'basin', 'cedar', 'delta', 'ember', 'fjord', 'grove', 'harbour', 'island', 'juniper',
        'kernel', 'lantern', 'meadow', 'north', 'orchard', 'pebble', 'quarry', 'river', 'saddle', 'timber',
        'umbra', 'valley', 'willow', 'yonder', 'zephyr', 'bridge', 'copper', 'drift', 'engine', 'furrow',
        'glacier'] AS list) AS w, generate_series(1, length) AS n
$$;

INSERT INTO authors (id, name)
SELECT n, 'Author ' || n FROM generate_series(1, 10) AS n;

INSERT INTO tags (id, slug, name)
SELECT n, 'tag-' || n, 'Tag ' || n FROM generate_series(1, 30) AS n;

INSERT INTO posts (id, author_id, slug, title, summary, body, created_at)
SELECT n,
       1 + (n * 7) % 10,
       'post-' || n,
       'Post ' || n || ' ' || pg_temp.words(n, 5),
       pg_temp.words(n + 11, 16),
       pg_temp.words(n + 23, 180),
       timestamp '2026-01-01 00:00:00' + n * interval '37 minutes'
FROM generate_series(1, 1000) AS n;

-- Three tags for three posts in five, two for the others: 2,600 links.
INSERT INTO post_tags (post_id, tag_id)
SELECT p, 1 + (p * 7 + k * 11) % 30
FROM generate_series(1, 1000) AS p, generate_series(0, 2) AS k
WHERE k < 2 OR p % 5 < 3;

-- 10 comments a post.
INSERT INTO comments (id, post_id, author, body, created_at)
SELECT n,
       1 + n % 1000,
       'Reader ' || 1 + n % 97,
       pg_temp.words(n, 12 + n % 9),
       timestamp '2026-03-01 00:00:00' + n * interval '11 minutes'
FROM generate_series(1, 10000) AS n;
