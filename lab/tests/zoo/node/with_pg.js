// node-postgres.
"use strict";

const { Client, Pool } = require("pg");
const { server, serve, TRUSTED, SCRAM, PLAIN } = require("./operations");

const PARAMETER = "SELECT name FROM zoo WHERE id = $1";
let client;
let pool;

const connect = async (user, ssl = false) => {
  if (client) await client.end();
  client = new Client({ ...server, user, ssl });
  await client.connect();
};
const named = (id) =>
  client.query({ name: "cached", text: "SELECT name FROM zoo WHERE id > $1", values: [id] });

serve(`node-postgres ${require("pg/package.json").version}, Node.js ${process.versions.node}`, {
  connect: () => connect(TRUSTED),
  "connect, SCRAM": () => connect(SCRAM),
  "plain query": () => client.query(PLAIN),
  "parameter query": () => client.query(PARAMETER, [1]),
  again: () => client.query(PARAMETER, [2]),
  "named query": () => named(1),
  "named query again": () => named(2),
  "transaction of 3 cached queries": async () => {
    await client.query("BEGIN");
    for (const id of [1, 2, 3]) await named(id);
    await client.query("COMMIT");
  },
  "open a pool": async () => {
    pool = new Pool({ ...server, user: TRUSTED, ssl: false, max: 1, idleTimeoutMillis: 0 });
    (await pool.connect()).release();
  },
  "take from the pool": async () => (await pool.connect()).release(),
});
