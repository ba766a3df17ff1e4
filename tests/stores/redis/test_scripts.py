"""Scripts, and servers that forgot them."""

from __future__ import annotations

import asyncio
import re
from importlib.resources import files

import pytest

from ropeway.stores.redis import RedisStore
from ropeway.stores.redis.keys import QUEUE_KEYS
from ropeway.stores.redis.scripts import SCRIPTS
from ropeway.testing.arrange import add, claim
from ropeway.testing.factories import QUEUE, complete, new_job, new_jobs

FOLDER = files("ropeway.stores.redis") / "lua"
VERBS = sorted(file.name.removesuffix(".lua") for file in FOLDER.iterdir() if file.name.endswith(".lua"))


@pytest.mark.parametrize("verb", VERBS)
def test_every_script_says_what_it_does_takes_and_returns(verb: str):
    does, *rest = (FOLDER / f"{verb}.lua").read_text().splitlines()
    header = "\n".join(line for line in rest[:6] if line.startswith("--"))

    assert does.startswith("-- ")
    assert re.search(r"^-- Takes ", header, re.MULTILINE)
    assert re.search(r"^-- Returns ", header, re.MULTILINE)


@pytest.mark.parametrize("verb", VERBS)
def test_scripts_use_only_the_keys_that_are_listed(verb: str):
    used = set(re.findall(r"(?:base|KEYS\[1\]) \.\. ':([a-z]+:?)", SCRIPTS[verb].text))

    assert used <= QUEUE_KEYS.keys()


async def test_a_server_that_forgot_its_scripts_is_told_them_again(store: RedisStore):
    await add(store, *new_jobs(3))
    await store._executor.execute("SCRIPT", "FLUSH")

    [job, *_] = await claim(store, 1)
    await store._executor.execute("SCRIPT", "FLUSH")
    settled = await store.settle(QUEUE, [complete(job)])

    assert [answer.verdict for answer in settled.answers] == ["done"]


async def test_many_calls_at_once_find_their_scripts_again(store: RedisStore):
    await add(store, new_job())
    await store._executor.execute("SCRIPT", "FLUSH")

    answers = await asyncio.gather(*(store.add([[new_job(f"many-{n}")]]) for n in range(50)))

    assert {answer.verdict for [[answer]] in answers} == {"created"}
