"""Every store has one function for each command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ropeway.store.commands import COMMANDS, Command, Find, Withdraw
from ropeway.stores.memory.verbs import VERBS as IN_MEMORY
from ropeway.stores.postgres.verbs import VERBS as IN_POSTGRES
from ropeway.stores.redis.clustered import ClusterStore
from ropeway.stores.redis.verbs import VERBS as IN_REDIS
from ropeway.stores.sqlite.verbs import VERBS as IN_SQLITE
from ropeway.stores.sqlite.verbs import reads, writes

Table = Mapping[type[Command[Any]], object]

TABLES: dict[str, Table] = {
    "memory": IN_MEMORY,
    "sqlite": IN_SQLITE,
    "redis": IN_REDIS,
    "redis-cluster": ClusterStore.verbs,
    "postgres": IN_POSTGRES,
}
# Their `do` executes these itself.
WITHOUT: dict[str, set[type[Command[Any]]]] = {"memory": {Find}, "sqlite": {Withdraw}}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
@pytest.mark.parametrize("store", TABLES)
def test_a_store_has_a_function_for_the_command(store: str, command: type[Command[Any]]):
    is_missing = command not in TABLES[store]

    assert is_missing == (command in WITHOUT.get(store, ())), f"{store} has no function for {command.__name__}"


@pytest.mark.parametrize("decorator", [reads, writes])
def test_sqlite_refuses_a_second_function_for_a_command(decorator: Any):
    with pytest.raises(TypeError, match="Find is executed by two functions"):
        decorator(Find)(lambda _: None)
