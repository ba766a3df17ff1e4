// /// script
// dependencies = ["bullmq@6.7.0", "ioredis@5"]
//
// [tool.benchmarks]
// title = "BullMQ 6.7.0 on Node"
// family = "redis"
// role = "rival"
// durable = false
// note = "concurrency 100; a job counts when its completion is acknowledged"
// jobs = 10_000
// ///

const { Queue, Worker } = require("bullmq");

const PAYLOAD = { n: 1, to: "user@example.com" };
const BULK = 1_000;

const connection = (place) => {
  const url = new URL(place);
  return { host: url.hostname, port: Number(url.port) };
};
const open = (place) => new Queue("bench", { connection: connection(place) });
const start = (place, handler, concurrency = 100) =>
  new Worker("bench", handler, { connection: { ...connection(place), maxRetriesPerRequest: null }, concurrency });
const now = () => Number(process.hrtime.bigint());

async function repeat(seconds, step, each = 1) {
  await step();
  const [started, cpu] = [now(), process.cpuUsage()];
  let count = 0;
  while (now() - started < seconds * 1e9) {
    await step();
    count += each;
  }
  return rate(count, started, cpu);
}

function rate(count, started, cpu) {
  const used = process.cpuUsage(cpu);
  return {
    per_second: count / ((now() - started) / 1e9),
    cpu_us: count ? (used.user + used.system) / count : 0,
    jobs: count,
  };
}

function percentiles(samples) {
  const sorted = samples.slice(1).sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  return { p50_ms: at(0.5), p99_ms: at(0.99) };
}

const bulk = (n) => Array.from({ length: n }, () => ({ name: "noop", data: PAYLOAD }));
const random_priorities = (n) =>
  Array.from({ length: n }, () => ({
    name: "noop",
    data: PAYLOAD,
    opts: { priority: 1 + Math.floor(Math.random() * 1000) },
  }));

async function fill_with(place, n, make) {
  const queue = open(place);
  for (let done = 0; done < n; done += BULK) await queue.addBulk(make(Math.min(BULK, n - done)));
  return {};
}

const functions = {
  async add_one({ place, seconds }) {
    const queue = open(place);
    return repeat(seconds, () => queue.add("noop", PAYLOAD));
  },

  async add_bulk({ place, seconds }) {
    const queue = open(place);
    const jobs = bulk(BULK);
    return repeat(seconds, () => queue.addBulk(jobs), BULK);
  },

  fill: ({ place, n }) => fill_with(place, n, bulk),
  fill_prioritized: ({ place, n }) => fill_with(place, n, random_priorities),
  process: ({ place, n, seconds }) => functions.process_at({ place, n, seconds, concurrency: 100 }),

  process_at({ place, n, seconds, concurrency }) {
    return new Promise((resolve) => {
      let count = 0;
      const [started, cpu] = [now(), process.cpuUsage()];
      const end = () => resolve(rate(count, started, cpu));
      setTimeout(end, seconds * 1000);
      start(place, async () => {}, concurrency).on("completed", () => {
        count += 1;
        if (count === n) end();
      });
    });
  },

  async latency({ place, seconds }) {
    const queue = open(place);
    const samples = [];
    let heard;
    start(place, async (job) => {
      samples.push((now() - job.data.sent) / 1e6);
      heard();
    });
    const started = now();
    while (now() - started < seconds * 1e9 || samples.length < 5) {
      await new Promise((resolve) => setTimeout(resolve, 5 + 15 * Math.random()));
      const hearing = new Promise((resolve) => (heard = resolve));
      await queue.add("noop", { sent: now() });
      await hearing;
    }
    return percentiles(samples);
  },

  async idle({ place, seconds }) {
    start(place, async () => {});
    const wait = (s) => new Promise((resolve) => setTimeout(resolve, s * 1000));
    await wait(1);
    const [started, cpu] = [now(), process.cpuUsage()];
    await wait(seconds);
    const used = process.cpuUsage(cpu);
    return {
      cpu_percent: (100 * (used.user + used.system)) / ((now() - started) / 1e3),
      rss_mb: process.memoryUsage().rss / 2 ** 20,
    };
  },
};

const [name, args] = process.argv.slice(2);
Promise.resolve(functions[name]?.(JSON.parse(args)) ?? null).then((answer) => {
  console.log(JSON.stringify(answer));
  process.exit(0);
});
