// What a system written for Node shares with the others: as protocol.py.

const PAYLOAD = { n: 1, to: "user@example.com" };
const BULK = 1_000;

const now = () => Number(process.hrtime.bigint());
const wait = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

function answer(functions) {
  const [name, args] = process.argv.slice(2);
  Promise.resolve(functions[name]?.(JSON.parse(args)) ?? null).then((answer) => {
    console.log(JSON.stringify(answer));
    process.exit(0);
  });
}

async function repeat(seconds, step, each = 1) {
  await step();
  const watch = stopwatch();
  let count = 0;
  while (watch.seconds() < seconds) {
    await step();
    count += each;
  }
  return watch.rate(count);
}

// Calls the step from many tasks at once, each awaiting its own.
async function repeat_at_once(seconds, step, tasks = 100) {
  await step();
  const watch = stopwatch();
  let count = 0;
  const one_task = async () => {
    while (watch.seconds() < seconds) {
      await step();
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: tasks }, one_task));
  return watch.rate(count);
}

function stopwatch() {
  const [started, cpu] = [now(), process.cpuUsage()];
  const seconds = () => (now() - started) / 1e9;
  const rate = (count) => {
    const used = process.cpuUsage(cpu);
    return {
      per_second: count / seconds(),
      cpu_us: count ? (used.user + used.system) / count : 0,
      jobs: count,
    };
  };
  return { seconds, rate };
}

// Works until n jobs are settled or the time is over; the store is asked how many are not. The clock starts with the
// first handler: `work` is given a function to call as each of them begins.
async function settled(n, seconds, work, unsettled) {
  const before = await unsettled();
  let [left, watch, began] = [n, undefined, undefined];
  const started = new Promise((resolve) => (began = resolve));
  const enough = new Promise((resolve) => {
    work(() => {
      watch ??= stopwatch();
      began();
      left -= 1;
      if (left === 0) resolve();
    });
  });
  await started;
  await Promise.race([enough, wait(seconds)]);
  for (;;) {
    const count = before - (await unsettled());
    if (count >= n || watch.seconds() >= seconds) return watch.rate(count);
    await wait(0.002);
  }
}

// Adds one job after the other to an idle queue. `start` is given what a handler does with the moment that it finds.
async function latencies(seconds, start, add) {
  const samples = [];
  let heard;
  await start((sent) => {
    samples.push((now() - sent) / 1e6);
    heard();
  });
  const watch = stopwatch();
  while (watch.seconds() < seconds || samples.length < 5) {
    await wait(0.005 + 0.015 * Math.random());
    const hearing = new Promise((resolve) => (heard = resolve));
    await add(now());
    await hearing;
  }
  return percentiles(samples);
}

function percentiles(samples) {
  const sorted = samples.slice(1).sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  return { p50_ms: at(0.5), p99_ms: at(0.99) };
}

async function idle_cost(seconds) {
  await wait(1);
  const [started, cpu] = [now(), process.cpuUsage()];
  await wait(seconds);
  const used = process.cpuUsage(cpu);
  return {
    cpu_percent: (100 * (used.user + used.system)) / ((now() - started) / 1e3),
    rss_mb: process.memoryUsage().rss / 2 ** 20,
  };
}

module.exports = { PAYLOAD, BULK, answer, repeat, repeat_at_once, settled, latencies, idle_cost, stopwatch };
