# /// script
# dependencies = ["dbos==3.3.0"]
#
# [tool.benchmarks]
# title = "DBOS 3.3.0"
# family = "postgres"
# role = "rival"
# durable = true
# backlogs = false
# note = "runs each job as a durable workflow"
# jobs = 400
# ///
"""DBOS on PostgreSQL: the same programs as on SQLite."""

from benchmarks import protocol
from benchmarks.systems import dbos

if __name__ == "__main__":
    protocol.answer({name: getattr(dbos, name) for name in ("add_one", "run_steps", "latency")})
