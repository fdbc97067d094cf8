// A blog in Node.js: express, node-postgres, node-redis.
"use strict";

const express = require("express");
const { Pool } = require("pg");
const { createClient } = require("redis");

const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 8 });
const redis = createClient({ url: process.env.REDIS_URL });
const app = express();

// One query.
app.get("/posts", async (request, response) => {
  const posts = await pool.query("SELECT id, title FROM posts ORDER BY id LIMIT 10");
  response.json(posts.rows);
});

// Three queries, one of them in a transaction, and a counter in Redis.
app.get("/posts/1", async (request, response) => {
  const views = await redis.incr("views:1");
  const post = await pool.query(
    "SELECT title, name FROM posts JOIN authors ON authors.id = author WHERE posts.id = $1",
    [1],
  );
  const comments = await pool.query("SELECT text FROM comments WHERE post = $1 ORDER BY id", [1]);
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    await client.query("UPDATE posts SET seen = seen + 1 WHERE id = $1", [1]);
    await client.query("COMMIT");
  } finally {
    client.release();
  }
  response.json({ views, ...post.rows[0], comments: comments.rows });
});

// One query for the authors, and one for each of them.
app.get("/authors", async (request, response) => {
  const authors = await pool.query("SELECT id FROM authors ORDER BY id");
  const counts = {};
  for (const { id } of authors.rows) {
    const sql = "SELECT count(*) FROM posts WHERE author = $1";
    counts[id] = (await pool.query(sql, [id])).rows[0].count;
  }
  response.json(counts);
});

const [host, port] = process.env.BIND.split(":");
redis.connect().then(() => app.listen(Number(port), host));
