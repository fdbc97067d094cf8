// postgres.js: prepares with Flush, pipelines whatever is not awaited.
"use strict";

const postgres = require("postgres");
const { server, serve, TRUSTED, PLAIN } = require("./operations");

// The package does not show its own description.
const { version } = require("./package-lock.json").packages["node_modules/postgres"];
let sql;

// It connects when there is something to ask.
const connect = async (options) => {
  if (sql) await sql.end({ timeout: 1 });
  sql = postgres({ ...server, username: TRUSTED, ssl: false, max: 1, ...options });
  await sql.unsafe(PLAIN);
};
const cached = (sql, id) => sql`SELECT name FROM zoo WHERE id > ${id}`;

serve(`postgres.js ${version}, Node.js ${process.versions.node}`, {
  "connect and plain query": () => connect({}),
  "the same without fetch_types": () => connect({ fetch_types: false }),
  "plain query": () => sql.unsafe(PLAIN),
  "parameter query": () => sql`SELECT name FROM zoo WHERE id = ${1}`,
  again: () => sql`SELECT name FROM zoo WHERE id = ${2}`,
  "prepare a query": () => cached(sql, 1),
  "transaction of 3 cached queries": () =>
    sql.begin(async (sql) => {
      for (const id of [1, 2, 3]) await cached(sql, id);
    }),
  "transaction of 3 as an array": () => sql.begin((sql) => [1, 2, 3].map((id) => cached(sql, id))),
  "3 queries at once": () => Promise.all([1, 2, 3].map((id) => cached(sql, id))),
  "take from the pool": async () => (await sql.reserve()).release(),
});
