"""Adding jobs with dedupe keys, expiry and dead letters, and sending dead letters back."""

from __future__ import annotations

from pathlib import Path

import pytest

from ropeway import Queue, Unrecoverable, Worker
from ropeway.cli.exit_codes import ExitCode
from ropeway.testing.factories import QUEUE

from .conftest import Arrange, Ropeway

DEAD = "dead"
ADD = ("add", QUEUE, "send")


def letter(arrange: Arrange, id: str = "a") -> str:
    """A job that fails for good; answers the id of its dead letter."""

    async def fail(queue: Queue) -> str:
        async def send(_: object) -> None:
            raise Unrecoverable("no address")

        await queue.add("send", {"to": id}, id=id, dead_letter=DEAD)
        async with Worker(queue, send):
            async for event in queue.events("start"):
                if event.name == "failed" and event.job_id == id:
                    break
        [found] = await Queue(DEAD, store=queue.store).find("waiting", limit=1, newest_first=True)
        return found.id

    made: str = arrange.on_queue(fail)
    return made


class TestDedupe:
    def test_a_second_job_with_the_key_finds_the_first(self, ropeway: Ropeway):
        first = ropeway(*ADD, "--dedupe", "k")
        second = ropeway(*ADD, "--dedupe", "k")
        third = ropeway(*ADD, "--dedupe", "k", "--json").json

        assert second.out == first.out
        assert "holds the dedupe key" in second.err
        assert (third["created"], third["deduplicated"]) == (False, True)

    def test_by_the_data(self, ropeway: Ropeway):
        adds = [ropeway(*ADD, data, "--dedupe-by-data").out for data in ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}', "3")]

        assert adds[0] == adds[1] != adds[2]

    def test_a_mode_with_its_time(self, ropeway: Ropeway):
        id = ropeway(*ADD, "1", "--dedupe", "k", "--dedupe-mode", "debounce", "--dedupe-ttl", "1h").out.strip()
        ropeway(*ADD, "2", "--dedupe", "k", "--dedupe-mode", "debounce", "--dedupe-ttl", "1h")
        job = ropeway("jobs", "show", id, "--json").json["job"]

        assert (job["state"], job["data"], job["dedupe"]) == ("delayed", 2, "k")

    def test_in_a_file(self, ropeway: Ropeway, tmp_path: Path):
        (tmp_path / "jobs.jsonl").write_text(
            '{"name": "send", "data": 1, "options": {"dedupe": "k", "expires": "1h"}}\n'
            '{"name": "send", "data": 2, "options": {"dedupe": {"key": "k", "mode": "keep-last"}}}\n'
            '{"name": "send", "data": 3, "options": {"dedupe": {"mode": "throttle", "ttl": "1h"}}}\n'
            '{"name": "send", "data": 3, "options": {"dedupe": {"mode": "throttle", "ttl": "1h"}}}\n'
        )

        assert ropeway("add", QUEUE, "--bulk", "jobs.jsonl").out == "2 jobs added, 2 jobs found\n"

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (("--dedupe-mode", "throttle"), "needs a key"),
            (("--dedupe", "k", "--dedupe-by-data"), "not both"),
            (("--dedupe", "k", "--dedupe-mode", "throttle"), "needs one"),
            (("--dedupe", "k", "--dedupe-ttl", "1h"), 'mode "until-final" has none'),
            (("--dedupe", "k", "--dedupe-mode", "latest"), "'latest' is not one of"),
            (("--dedupe", ""), "dedupe key"),
            (("--dead-letter", QUEUE), "own queue"),
            (("--expires", "0"), "at least 1 ms"),
        ],
    )
    def test_bad_input_is_refused(self, ropeway: Ropeway, options: tuple[str, ...], said: str):
        ran = ropeway(*ADD, *options)

        assert ran.code == ExitCode.USAGE
        assert said in ran.err

    @pytest.mark.parametrize("dedupe", ['{"kee": "k"}', '{"key": "k", "ttl": 5}', '{"key": ""}', "5"])
    def test_bad_input_in_a_file_names_the_line(self, ropeway: Ropeway, tmp_path: Path, dedupe: str):
        (tmp_path / "jobs.jsonl").write_text(f'{{"name": "send", "options": {{"dedupe": {dedupe}}}}}\n')

        ran = ropeway("add", QUEUE, "--bulk", "jobs.jsonl")

        assert ran.code == ExitCode.USAGE
        assert "line 1: " in ran.err


class TestShown:
    def test_a_job_that_expires_says_by_when(self, ropeway: Ropeway):
        id = ropeway(*ADD, "1", "--expires", "1h", "--dead-letter", DEAD, "--dedupe", "k").out.strip()

        shown = ropeway("jobs", "show", id).out

        for fact in ("start by", f"dead letter   {DEAD}", "dedupe key    k"):
            assert fact in shown
        assert "expires +" in ropeway("jobs", "list").out

    def test_a_dead_letter_says_where_it_comes_from(self, ropeway: Ropeway, arrange: Arrange):
        id = letter(arrange)

        shown = ropeway("jobs", "show", id).out

        assert f"origin        {QUEUE}/a · failed at " in shown
        assert "after 1 attempt: Unrecoverable: no address" in shown
        assert f"from {QUEUE}: Unrecoverable: no address" in ropeway("jobs", "list", "--queue", DEAD).out


class TestRedrive:
    def test_one_letter_goes_back(self, ropeway: Ropeway, arrange: Arrange):
        first, second = letter(arrange), letter(arrange, "b")

        ran = ropeway("jobs", "redrive", DEAD, first)

        assert (ran.code, ran.out) == (ExitCode.OK, f"1 dead letter of {DEAD} sent back\n")
        assert (arrange.state_of("a"), arrange.state_of("b")) == ("waiting", "failed")
        assert (arrange.state_of(first, DEAD), arrange.state_of(second, DEAD)) == (None, "waiting")

    def test_all_go_back_after_a_question(self, ropeway: Ropeway, arrange: Arrange):
        letter(arrange)
        letter(arrange, "b")

        asked = ropeway("jobs", "redrive", DEAD)
        one = ropeway("jobs", "redrive", DEAD, "--limit", "1", "--yes", "--json")
        rest = ropeway("jobs", "redrive", DEAD, "--yes", "--json")
        none = ropeway("jobs", "redrive", DEAD, "--json")

        assert asked.code == ExitCode.USAGE
        assert "Send up to 2 dead letters of dead back?" in asked.err
        assert one.json == rest.json == {"queue": DEAD, "sent": 1}
        assert none.code in (ExitCode.OK, ExitCode.NOT_FOUND)

    def test_what_is_no_letter_stays(self, ropeway: Ropeway, arrange: Arrange):
        arrange.job(id="plain")

        plain = ropeway("jobs", "redrive", QUEUE, "plain")
        missing = ropeway("jobs", "redrive", QUEUE, "nobody")

        assert plain.code == ExitCode.FAILED
        assert "it is no dead letter" in plain.err
        assert missing.code == ExitCode.NOT_FOUND
        assert arrange.state_of("plain") == "waiting"

    def test_ids_and_a_limit_are_refused(self, ropeway: Ropeway, arrange: Arrange):
        arrange.job()

        assert ropeway("jobs", "redrive", QUEUE, "a", "--limit", "1").code == ExitCode.USAGE
