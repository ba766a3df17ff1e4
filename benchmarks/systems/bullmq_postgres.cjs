// /// script
// dependencies = ["bullmq@6.7.0", "pg@8"]
//
// [tool.benchmarks]
// title = "BullMQ 6.7.0 on Node"
// family = "postgres"
// role = "rival"
// durable = true
// backlogs = false
// note = "its PostgreSQL backend; concurrency 100; a job counts when its completion is acknowledged"
// jobs = 1_500
// ///

const { createPostgresBackend, withBackend } = require("bullmq");
const protocol = require("../protocol.cjs");
const { functions } = require("./bullmq.cjs");

const { Queue, Worker } = withBackend(createPostgresBackend);

async function open(place) {
  const queue = new Queue("bench", { connection: { connectionString: place, migrate: true } });
  await queue.waitUntilReady();
  return queue;
}

const start = (place, handler, concurrency = 100) =>
  new Worker("bench", handler, { connection: { connectionString: place, migrate: true }, concurrency });

protocol.answer(functions({ open, start }));
