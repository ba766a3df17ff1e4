// A worker in plain JavaScript: claims jobs from `ropeway serve`, runs them, and tells how they ended.
//
//     node examples/http_worker.mjs                  until Ctrl-C
//     node examples/http_worker.mjs --once           until nothing is left to do
//
// It needs Node 18 or newer, and no package. ROPEWAY_URL is the server (http://127.0.0.1:8787), ROPEWAY_TOKEN its token,
// ROPEWAY_QUEUE the queue (default).

const server = process.env.ROPEWAY_URL ?? "http://127.0.0.1:8787";
const queue = process.env.ROPEWAY_QUEUE ?? "default";
const worker = `node:${process.pid}`;
const concurrency = 10;

// What runs the jobs, by type. `job.signal` is aborted when the job is no longer ours: another worker may have it.
const handlers = {
  async add({ payload }) {
    return payload.reduce((sum, number) => sum + number, 0);
  },
  async resize(job) {
    for (let percent = 0; percent <= 100; percent += 25) {
      if (job.signal.aborted) return;
      await job.progress(percent);
    }
    await job.log(`${job.payload.path} is done`);
    return { path: job.payload.path };
  },
  async fail({ attempt }) {
    throw new Error(`attempt ${attempt} failed`);
  },
};

async function post(path, body, signal) {
  const headers = { "content-type": "application/json" };
  if (process.env.ROPEWAY_TOKEN) headers.authorization = `Bearer ${process.env.ROPEWAY_TOKEN}`;
  const answer = await fetch(`${server}/v1/queues/${queue}/${path}`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
    signal,
  });
  const text = await answer.text();
  if (answer.ok) return text ? JSON.parse(text) : null;
  const problem = text.startsWith("{") ? JSON.parse(text) : { detail: text };
  throw Object.assign(new Error(problem.detail), { status: answer.status });
}

// Repeats a call that the server could not take now. Every call can be repeated: its token says what it is about.
async function insist(path, body) {
  for (let pause = 100; ; pause = Math.min(pause * 2, 5000)) {
    try {
      return await post(path, body);
    } catch (error) {
      if (error.status && error.status !== 429 && error.status < 500) throw error;
      console.error(`${path}: ${error.message}; trying again in ${pause} ms`);
      await new Promise((done) => setTimeout(done, pause * (0.5 + Math.random() / 2)));
    }
  }
}

const running = new Map(); // jobs that are ours, by id
const stopping = new AbortController();

async function run(job) {
  const lost = new AbortController();
  const tell = (verb, body) => insist(`jobs/${job.id}/${verb}`, { token: job.token, worker, ...body });
  running.set(job.id, { job, lost });
  try {
    const handler = handlers[job.type];
    if (!handler) throw new Error(`this worker has no handler for ${job.type}`);
    const result = await handler({
      ...job,
      signal: lost.signal,
      progress: (progress) => tell("progress", { progress }),
      log: (...lines) => tell("log", { lines }),
    });
    if (!lost.signal.aborted) await tell("complete", { result: result ?? null });
  } catch (error) {
    if (error.status === 409 || error.status === 404) {
      console.error(`${job.id} is no longer ours`);
    } else if (!lost.signal.aborted) {
      await tell("fail", { error: String(error), trace: error.stack ?? "" }).catch((late) => console.error(late.message));
    }
  } finally {
    running.delete(job.id);
  }
}

// One call for all jobs. Whatever is not answered `done` is no longer ours.
async function beat() {
  const jobs = [...running.values()].map(({ job }) => ({ id: job.id, token: job.token, worker }));
  if (!jobs.length) return;
  try {
    for (const { id, verdict } of (await post("heartbeat", { jobs })).jobs) {
      if (verdict !== "done") running.get(id)?.lost.abort();
    }
  } catch (error) {
    console.error(`heartbeat: ${error.message}`);
  }
}

async function main() {
  const once = process.argv.includes("--once");
  let heart;
  const busy = new Set();
  while (!stopping.signal.aborted) {
    const count = concurrency - busy.size;
    if (count > 0) {
      let claimed;
      try {
        // It waits on the server. While jobs run here, not for long: a free place must not wait for others.
        const wait = once ? 0 : busy.size ? 1 : 30;
        claimed = await post("claim", { worker, count, types: Object.keys(handlers), wait }, stopping.signal);
      } catch (error) {
        if (stopping.signal.aborted) break;
        console.error(`claim: ${error.message}`);
        await new Promise((done) => setTimeout(done, 1000));
        continue;
      }
      heart ??= setInterval(beat, claimed.heartbeat * 1000);
      for (const job of claimed.jobs) {
        const task = run(job).finally(() => busy.delete(task));
        busy.add(task);
      }
      if (once && !claimed.jobs.length && !busy.size) break;
      if (claimed.jobs.length < count && !once) continue;
    }
    if (busy.size) await Promise.race(busy);
  }
  await Promise.all(busy);
  clearInterval(heart);
}

for (const name of ["SIGINT", "SIGTERM"]) process.once(name, () => stopping.abort());
await main();
