// /// script
// dependencies = ["pg-boss@12.35.0", "pg@8"]
//
// [tool.benchmarks]
// title = "pg-boss 12.35.0"
// family = "postgres"
// role = "rival"
// durable = true
// backlogs = false
// note = "two workers with batches of 50, which fetch on while batches are full; woken by NOTIFY"
// jobs = 5_000
// ///

const { PgBoss } = require("pg-boss");
const { Pool } = require("pg");
const protocol = require("../protocol.cjs");
const { PAYLOAD, BULK } = protocol;

const UNSETTLED = "SELECT count(*)::int AS n FROM pgboss.job WHERE name = 'bench' AND state < 'completed'";
const WORK = { batchSize: 50, localConcurrency: 2, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 };

async function open(place) {
  const boss = new PgBoss({ connectionString: place, useListenNotify: true });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  await boss.createQueue("bench", { notify: true });
  return boss;
}

const many = (n) => Array.from({ length: n }, () => ({ data: PAYLOAD }));

protocol.answer({
  async add_one({ place, seconds }) {
    const boss = await open(place);
    return protocol.repeat(seconds, () => boss.send("bench", PAYLOAD));
  },

  async add_bulk({ place, seconds }) {
    const boss = await open(place);
    const jobs = many(BULK);
    return protocol.repeat(seconds, () => boss.insert("bench", jobs), BULK);
  },

  async fill({ place, n }) {
    const boss = await open(place);
    for (let done = 0; done < n; done += BULK) await boss.insert("bench", many(Math.min(BULK, n - done)));
    return {};
  },

  async process({ place, n, seconds }) {
    const boss = await open(place);
    const pool = new Pool({ connectionString: place, max: 1 });
    const unsettled = async () => (await pool.query(UNSETTLED)).rows[0].n;
    const work = (started) => boss.work("bench", WORK, async (jobs) => jobs.forEach(() => started()));
    return protocol.settled(n, seconds, work, unsettled);
  },

  async latency({ place, seconds }) {
    const boss = await open(place);
    return protocol.latencies(
      seconds,
      (heard) => boss.work("bench", WORK, async (jobs) => jobs.forEach((job) => heard(job.data.sent))),
      (sent) => boss.send("bench", { sent }),
    );
  },
});
