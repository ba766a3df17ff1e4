"""Packs bundles of jobs for the scripts that add them, and reads their answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import astuple

from ...job.flows import Child
from ...job.instants import Instant
from ...job.record import NewJob
from ...store.answer_codes import ADDED
from ...store.values import Added
from .constants import POLICY_CODES
from .encoding import as_json, as_text, given, pack
from .ids import all_shortened, shortened
from .keys import Keys
from .link import Argument

Bundle: TypeAlias = Sequence[NewJob]
Bundles: TypeAlias = Sequence[Bundle]

_text: Final = msgspec.msgpack.Encoder().encode


class JobPacker:
    """Packs jobs for a script: queues and names as numbers, and the texts of all jobs one after the other."""

    def __init__(self, *queues: str) -> None:
        """`queues` get the first numbers, with or without jobs."""
        self.queues: list[str] = list(queues)
        self._numbers = {queue: number for number, queue in enumerate(queues, 1)}
        self._names: dict[str, int] = {}
        self._texts: list[bytes] = []
        self.rare: list[tuple[msgspec.Raw, Any]] = []
        """Extras and parents, for each kind of job that has any."""
        self._rare_numbers: dict[tuple[Any, ...], int] = {}

    @property
    def names(self) -> list[tuple[str, str]]:
        return [(name, as_json(name).decode()) for name in self._names]

    @property
    def texts(self) -> bytes:
        return b"".join(self._texts)

    def job(self, job: NewJob, id: str) -> tuple[Any, ...]:
        """One job as scripts take it; `id` is its id, shortened."""
        queue = self._numbers.get(job.queue)
        if queue is None:
            self.queues.append(job.queue)
            queue = self._numbers[job.queue] = len(self.queues)
        name = self._names.get(job.name)
        if name is None:
            name = self._names[job.name] = len(self._names) + 1
        # An array of three begins with one byte; what follows are the three texts themselves.
        text = _text((job.name, job.data, job.options))[1:]
        self._texts.append(text)
        if not _is_plain(job):
            due_at = False if job.due_at is None else job.due_at
            rare = self._rare_number(job) if job.tags or job.parents or job.children else False
            packed = id, len(text), name, queue, job.priority, job.lifo, job.delay, due_at, rare
            return (*packed, links_of(job.children)) if job.children else packed
        return id, len(text), name, queue

    def _rare_number(self, job: NewJob) -> int:
        """The number of what a job has rarely, which its siblings share."""
        key = job.tags, job.parents, len(job.children)
        number = self._rare_numbers.get(key)
        if number is None:
            parents = [(self._numbers.get(queue, 0), shortened(id), queue) for queue, id in map(astuple, job.parents)]
            self.rare.append((_extras(job), parents or False))
            number = self._rare_numbers[key] = len(self.rare)
        return number


def _extras(job: NewJob) -> msgspec.Raw:
    """Rarely used fields, as `JobRecord` has them; ids are shortened."""
    parents = [(parent.queue, shortened(parent.id)) for parent in job.parents]
    fields = (job.tags, parents, len(job.children)) if job.children else (job.tags, parents) if parents else (job.tags,)
    return as_text(pack(fields))


def links_of(children: Sequence[Child]) -> list[str]:
    """The key of each child and the letter of its policy, in turn."""
    ids = all_shortened([child.id for child in children])
    return [
        part
        for child, id in zip(children, ids, strict=True)
        for part in (f"{child.queue}/{id}", POLICY_CODES[child.policy])
    ]


class Load:
    """Keys and arguments of `add`; with `looks` the script judges the bundles and stores nothing."""

    def __init__(self, keys: Keys, bundles: Bundles, now: Instant | None, *, looks: bool = False) -> None:
        packer = JobPacker()
        ids = iter(all_shortened([job.id for bundle in bundles for job in bundle]))
        packed = [[packer.job(job, next(ids)) for job in bundle] for bundle in bundles]
        self.queues = packer.queues
        self.keys = tuple(map(keys.queue, self.queues))
        self.arguments = pack((given(now), packer.names, packed, len(self.queues), looks, packer.rare)), packer.texts


def _is_plain(job: NewJob) -> bool:
    """True without priority, LIFO, delay and rarely used fields."""
    return not (
        job.priority or job.lifo or job.delay or job.due_at is not None or job.tags or job.parents or job.children
    )


def alone(bundles: Bundles) -> NewJob | None:
    """The only job of the call, if it is plain: it has a script of its own, `add_one`."""
    if len(bundles) != 1 or len(bundles[0]) != 1:
        return None
    job = bundles[0][0]
    return job if _is_plain(job) else None


def arguments_of(job: NewJob, now: Instant | None) -> tuple[Argument, ...]:
    """The arguments of `add_one`."""
    arguments = shortened(job.id), job.name, _quoted(job.name), _text((job.name, job.data, job.options))[1:]
    return arguments if now is None else (*arguments, str(now))


_quoted: Final = lru_cache(maxsize=1024)(as_json)


def answers_of(bundles: Bundles, codes: str) -> list[list[Added]]:
    if codes.count("c") == len(codes):
        return [[Added(job.id, "created") for job in bundle] for bundle in bundles]
    answers: list[list[Added]] = []
    at = 0
    for bundle in bundles:
        answers.append([Added(job.id, ADDED[codes[at + n]]) for n, job in enumerate(bundle)])
        at += len(bundle)
    return answers
