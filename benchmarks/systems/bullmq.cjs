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

const { FlowProducer, Queue, Worker } = require("bullmq");
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

// Adds n jobs in families of so many children, or without parents, and runs all to the end.
async function run_flows({ place, n, children }) {
  const parents = children ? Math.floor(n / children) : 0;
  const job = { name: "noop", data: PAYLOAD, queueName: "bench" };
  const family = () => ({ ...job, children: Array.from({ length: children }, () => job) });
  const each = Math.max(1, Math.floor(BULK / children));
  const queue = redis.open(place);
  const producer = new FlowProducer({ connection: connection(place) });
  await Promise.all([queue.waitUntilReady(), producer.waitUntilReady()]);
  const watch = protocol.stopwatch();
  for (let done = 0; done < parents; done += each)
    await producer.addBulk(Array.from({ length: Math.min(each, parents - done) }, family));
  for (let done = 0; !children && done < n; done += BULK) await queue.addBulk(bulk(Math.min(BULK, n - done)));
  const added = watch.seconds();
  await new Promise((resolve) => {
    let count = 0;
    redis.start(place, async () => {}).on("completed", () => {
      count += 1;
      if (count === n + parents) resolve();
    });
  });
  const ended = watch.seconds();
  return { per_second: n / ended, add_per_second: n / added, run_per_second: n / (ended - added) };
}

if (require.main === module) {
  const { Redis } = require("ioredis");
  const own = { run_flows, bytes_per_job: (given) => bytes_per_job(new Redis(given.place), given) };
  protocol.answer({ ...functions(redis), ...own });
}
module.exports = { functions };
