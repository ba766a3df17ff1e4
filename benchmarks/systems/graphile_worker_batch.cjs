// /// script
// dependencies = ["graphile-worker@0.18.0", "pg@8"]
//
// [tool.benchmarks]
// title = "graphile-worker, batches"
// family = "postgres"
// role = "rival"
// durable = true
// backlogs = false
// note = "0.18.0, concurrency 100; claims 500 ahead into its local queue and completes in batches, as its page on performance advises"
// jobs = 15_000
// ///

const protocol = require("../protocol.cjs");
const { functions } = require("./graphile_worker.cjs");

protocol.answer(functions({ localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }));
