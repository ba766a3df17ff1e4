// /// script
// dependencies = ["graphile-worker@0.18.0", "pg@8"]
//
// [tool.benchmarks]
// title = "graphile-worker 0.18.0"
// family = "postgres"
// role = "rival"
// durable = true
// backlogs = false
// note = "concurrency 100, as it comes: a claim and a completion for each job"
// jobs = 2_000
// ///

const { makeWorkerUtils, run, Logger } = require("graphile-worker");
const { Pool } = require("pg");
const protocol = require("../protocol.cjs");
const { PAYLOAD, BULK } = protocol;

const logger = new Logger(() => () => {});

// A completed job has left the table.
const UNSETTLED = "SELECT count(*)::int AS n FROM graphile_worker._private_jobs";

async function open(place) {
  const utils = await makeWorkerUtils({ connectionString: place, logger });
  await utils.migrate();
  return utils;
}

// The same for both settings of the worker.
function functions(worker) {
  const start = (place, noop) =>
    run({
      preset: { worker: { connectionString: place, concurrentJobs: 100, maxPoolSize: 20, ...worker } },
      logger,
      noHandleSignals: true,
      taskList: { noop },
    });

  const many = (n) => Array.from({ length: n }, () => ({ identifier: "noop", payload: PAYLOAD }));

  return {
    async add_one({ place, seconds }) {
      const utils = await open(place);
      return protocol.repeat(seconds, () => utils.addJob("noop", PAYLOAD));
    },

    async add_bulk({ place, seconds }) {
      const utils = await open(place);
      const jobs = many(BULK);
      return protocol.repeat(seconds, () => utils.addJobs(jobs), BULK);
    },

    async fill({ place, n }) {
      const utils = await open(place);
      for (let done = 0; done < n; done += BULK) await utils.addJobs(many(Math.min(BULK, n - done)));
      return {};
    },

    process({ place, n, seconds }) {
      const pool = new Pool({ connectionString: place, max: 1 });
      const unsettled = async () => (await pool.query(UNSETTLED)).rows[0].n;
      return protocol.settled(n, seconds, (started) => start(place, async () => started()), unsettled);
    },

    async latency({ place, seconds }) {
      const utils = await open(place);
      return protocol.latencies(
        seconds,
        (heard) => start(place, async ({ sent }) => heard(sent)),
        (sent) => utils.addJob("noop", { sent }),
      );
    },
  };
}

if (require.main === module) protocol.answer(functions({}));
module.exports = { functions };
