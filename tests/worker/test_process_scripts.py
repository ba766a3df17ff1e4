"""Scripts whose handlers run in processes are loaded there again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

SCRIPT = """
    import asyncio
    from ropeway import JobFailed, Queue, Worker

    queue = Queue("sums", "sqlite:///{file}")

    @queue.task(run_in="process")
    def double(number: int) -> int:
        return 2 * number

    async def main() -> None:
        async with Worker(queue):
            job = await double.add(21)
            try:
                print(await job.result(timeout=60))
            except JobFailed as failed:
                print(failed.reason)

    {start}
"""


def _run(folder: Path, start: str) -> list[str]:
    script = folder / "sums.py"
    script.write_text(dedent(SCRIPT).format(file=folder / "sums.db", start=start))
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=True)
    return ran.stdout.splitlines()


def test_with_a_guard_they_run_once(tmp_path: Path):
    assert _run(tmp_path, 'if __name__ == "__main__": asyncio.run(main())') == ["42"]


@pytest.mark.parametrize("start", ["asyncio.run(main())", "double.add_sync(1); asyncio.run(main())"])
def test_without_one_the_job_says_what_is_missing(tmp_path: Path, start: str):
    [reason] = _run(tmp_path, start)

    assert 'under `if __name__ == "__main__":`' in reason


def test_a_script_that_cannot_be_loaded_fails_its_jobs_with_its_own_error(tmp_path: Path):
    [reason] = _run(tmp_path, 'if __name__ == "__main__": asyncio.run(main())\nelse: raise OSError("no such disk")')

    assert reason == "OSError: no such disk"
