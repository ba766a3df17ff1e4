// /// script
// dependencies = ["bullmq@6.7.0", "ioredis@5"]
//
// [tool.benchmarks]
// title = "BullMQ 6.7.0 on Node"
// family = "redis"
// role = "rival"
// durable = false
// backlogs = false
// note = "concurrency 100; a job counts when its completion is acknowledged"
// jobs = 10_000
// ///

const { Queue, Worker } = require("bullmq");
const protocol = require("../protocol.cjs");
const { PAYLOAD, BULK } = protocol;

const connection = (place) => {
  const url = new URL(place);
  return { host: url.hostname, port: Number(url.port) };
};
const redis = {
  open: (place) => new Queue("bench", { connection: connection(place) }),
  start: (place, handler, concurrency = 100) =>
    new Worker("bench", handler, { connection: { ...connection(place), maxRetriesPerRequest: null }, concurrency }),
};

const bulk = (n) => Array.from({ length: n }, () => ({ name: "noop", data: PAYLOAD }));
const with_options = (n, opts) => bulk(n).map((job) => ({ ...job, opts: opts() }));
const random_priorities = (n) => with_options(n, () => ({ priority: 1 + Math.floor(Math.random() * 1000) }));
const delayed = (n) => with_options(n, () => ({ delay: 24 * 3600 * 1000 }));

// The same for every backend, which opens a queue and starts a worker.
function functions({ open, start }) {
  async function fill_with(place, n, make) {
    const queue = await open(place);
    for (let done = 0; done < n; done += BULK) await queue.addBulk(make(Math.min(BULK, n - done)));
    return {};
  }

  const known = {
    async add_one({ place, seconds }) {
      const queue = await open(place);
      return protocol.repeat(seconds, () => queue.add("noop", PAYLOAD));
    },

    async add_concurrent({ place, seconds }) {
      const queue = await open(place);
      return protocol.repeat_at_once(seconds, () => queue.add("noop", PAYLOAD));
    },

    async add_bulk({ place, seconds }) {
      const queue = await open(place);
      const jobs = bulk(BULK);
      return protocol.repeat(seconds, () => queue.addBulk(jobs), BULK);
    },

    fill: ({ place, n }) => fill_with(place, n, bulk),
    fill_prioritized: ({ place, n }) => fill_with(place, n, random_priorities),
    fill_delayed: ({ place, n }) => fill_with(place, n, delayed),
    process: ({ place, n, seconds }) => known.process_at({ place, n, seconds, concurrency: 100 }),

    process_at({ place, n, seconds, concurrency }) {
      return new Promise((resolve) => {
        let count = 0;
        const watch = protocol.stopwatch();
        const end = () => resolve(watch.rate(count));
        setTimeout(end, seconds * 1000);
        start(place, async () => {}, concurrency).on("completed", () => {
          count += 1;
          if (count === n) end();
        });
      });
    },

    async latency({ place, seconds }) {
      const queue = await open(place);
      return protocol.latencies(
        seconds,
        (heard) => start(place, async (job) => heard(job.data.sent)),
        (sent) => queue.add("noop", { sent }),
      );
    },

    idle({ place, seconds }) {
      start(place, async () => {});
      return protocol.idle_cost(seconds);
    },
  };
  return known;
}

async function bytes_per_job(client, { place, n }) {
  const used = async () => Number(/used_memory:(\d+)/.exec(await client.info("memory"))[1]);
  const before = await used();
  await functions(redis).fill({ place, n });
  return { bytes: ((await used()) - before) / n };
}

if (require.main === module) {
  const { Redis } = require("ioredis");
  protocol.answer({ ...functions(redis), bytes_per_job: (given) => bytes_per_job(new Redis(given.place), given) });
}
module.exports = { functions };
