// The side of a client in the talk with the test: says its version, then performs one operation
// for each line that it reads, and answers `done` or `failed` and why.
"use strict";

const readline = require("node:readline");

const env = process.env;

exports.server = {
  host: env.ZOO_HOST,
  port: Number(env.ZOO_PORT),
  database: env.ZOO_DATABASE,
  password: env.ZOO_PASSWORD,
};
exports.TRUSTED = env.ZOO_TRUSTED;
exports.SCRAM = env.ZOO_SCRAM;
exports.PLAIN = "SELECT count(*) FROM zoo";

exports.serve = async (version, operations) => {
  console.log(version);
  for await (const line of readline.createInterface({ input: process.stdin })) {
    try {
      const perform = operations[line.trim()];
      if (!perform) throw new Error("unknown operation");
      await perform();
      console.log("done");
    } catch (error) {
      console.log(`failed ${error.message}`.replaceAll("\n", " "));
    }
  }
  process.exit(0);
};
