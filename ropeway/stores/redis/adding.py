"""Packs bundles of jobs for the scripts that add them, and reads their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any, Final, TypeAlias

import msgspec

from ...job.dedupe import DedupeRule
from ...job.extras import Extras
from ...job.flows import Child, Parent, Policy
from ...job.instants import Instant
from ...job.record import NewJob
from ...store.answer_codes import ADDED
from ...store.values import Added, AddVerdict
from .constants import CHUNK_OF_KEYS, POLICY_CODES
from .encoding import as_json, as_text, given, pack
from .ids import all_shortened, shortened, text_of
from .keys import Keys
from .link import Argument

Bundle: TypeAlias = Sequence[NewJob]
Bundles: TypeAlias = Sequence[Bundle]

_policy: Final = attrgetter("policy")
_text: Final = msgspec.msgpack.Encoder().encode
DEFAULT_MODE: Final = DedupeRule("").mode


Rare: TypeAlias = tuple[Any, ...]
"""What some jobs of a call have rarely, in the order of lua/lib/rare_fields.lua; fields at the end may be missing."""


class JobPacker:
    """Packs jobs for a script: queues and names as numbers, and the texts of all jobs one after the other."""

    def __init__(self, *queues: str) -> None:
        """`queues` get the first numbers, with or without jobs."""
        self.queues: list[str] = list(queues)
        self._numbers = {queue: number for number, queue in enumerate(queues, 1)}
        self._names: dict[str, int] = {}
        self._texts: list[bytes] = []
        self._ids: tuple[list[str], list[str]] = [], []
        self._rare: list[Rare] = []
        self._keyed: list[tuple[NewJob, int]] = []
        """Jobs that have nothing rare but a dedupe key in the default mode, with their numbers."""
        self._shared: dict[bytes, list[int]] = {}
        """Numbers of jobs that have the same extras."""
        self._last_shared: tuple[NewJob | None, list[int]] = None, []
        self._siblings: list[int] = []
        """Numbers of the newest jobs that have parents and nothing else rarely."""
        self._their_parents: tuple[Parent, ...] = ()

    @property
    def names(self) -> list[tuple[str, str]]:
        return [(name, as_json(name).decode()) for name in self._names]

    @property
    def texts(self) -> bytes:
        return b"".join(self._texts)

    @property
    def rare(self) -> list[Rare]:
        return [*self._rare, *(self._rare_of(job, (), _extras(job, ()), number) for job, number in self._keyed)]

    @property
    def keys(self) -> list[str] | None:
        """The dedupe keys of all jobs, if they differ and can stand in place of runs (lib/new_runs.lua); else None."""
        if len(self._keyed) < len(self._texts) or len(self.queues) > 1:
            return None
        keys = [job.extras.dedupe.key for job, _ in self._keyed if job.extras and job.extras.dedupe]
        return keys if len({*keys}) == len(keys) and "".join(keys).isascii() else None

    def all(self, bundles: Bundles) -> list[list[tuple[Any, ...]]]:
        """The jobs of bundles as scripts take them."""
        ids = [job.id for bundle in bundles for job in bundle]
        self._ids = ids, all_shortened(ids)
        left = iter(self._ids[1])
        return [[self.job(job, id) for job, id in zip(bundle, left)] for bundle in bundles]  # noqa: B905 - `left` goes on

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
        if job.extras is not None or job.tags or job.children:
            self._note_rare(job)
        elif parents := job.parents:
            run, number = self._siblings, len(self._texts)
            # Siblings share the tuple of their parents, and follow each other.
            if parents is self._their_parents and run[-1] == number - 1:
                run[-1] = number
            else:
                self._note_rare(job)
                self._their_parents, self._siblings = parents, self._last_shared[1]
        if not (job.priority or job.lifo or job.delay or job.due_at is not None or job.children):
            return id, len(text), name, queue
        due_at = False if job.due_at is None else job.due_at
        packed = id, len(text), name, queue, job.priority, job.lifo, job.delay, due_at
        return (*packed, links_of(job.children, self._short_ids)) if job.children else packed

    def _note_rare(self, job: NewJob) -> None:
        """Notes for the newest job what it has rarely."""
        number = len(self._texts)
        if job.extras is not None and job.extras.dedupe is not None:
            # Hardly another job has the same.
            if not (job.tags or job.parents or job.children) and _is_only_a_key(job.extras, job.extras.dedupe):
                self._keyed.append((job, number))
                return
            parents = self._parents_of(job)
            self._rare.append(self._rare_of(job, parents, _extras(job, parents), number))
            return
        last, jobs = self._last_shared
        # Siblings of a flow share their parents' tuple, so they are told by its identity.
        if (
            last is None
            or last.parents is not job.parents
            or last.extras is not job.extras
            or last.tags != job.tags
            or last.children
            or job.children
        ):
            parents = self._parents_of(job)
            extras = _extras(job, parents)
            if extras not in self._shared:
                self._shared[extras] = []
                self._rare.append(self._rare_of(job, parents, extras, self._shared[extras]))
            jobs = self._shared[extras]
            self._last_shared = job, jobs
        if jobs and jobs[-1] == number - 1:
            jobs[-1] = number
        else:
            jobs.extend((number, number))

    @cached_property
    def _short_ids(self) -> dict[str, str]:
        """Ids of jobs that were given together: those of flows are needed again, in links."""
        return dict(zip(*self._ids, strict=True))

    def _parents_of(self, job: NewJob) -> Sequence[tuple[str, str]]:
        if not job.parents:
            return ()
        return [(parent.queue, self._short_ids.get(parent.id) or shortened(parent.id)) for parent in job.parents]

    def _rare_of(self, job: NewJob, parents: Sequence[tuple[str, str]], extras: bytes, jobs: list[int] | int) -> Rare:
        numbered = [(self._numbers.get(queue, 0), id, queue) for queue, id in parents] if parents else False
        return as_text(extras), numbered, jobs, *_rules(job.extras)


def _extras(job: NewJob, parents: Sequence[tuple[str, str]]) -> bytes:
    """Rarely used fields, as `JobRecord` has them; ids are shortened."""
    fields: tuple[Any, ...] = (job.tags,)
    if job.extras is not None:
        fields = job.tags, parents, len(job.children), job.extras
    elif job.children:
        fields = job.tags, parents, len(job.children)
    elif parents:
        fields = job.tags, parents
    return pack(fields)


def _is_only_a_key(extras: Extras, rule: DedupeRule) -> bool:
    return rule.mode == DEFAULT_MODE and extras == Extras(None, None, None, rule)


def _rules(extras: Extras | None) -> tuple[Any, ...]:
    """What scripts need of it when they add a job."""
    if extras is None:
        return ()
    rule = extras.dedupe
    if extras.start_within is None and extras.start_by is None:
        return () if rule is None else (rule.key,) if rule.mode == DEFAULT_MODE else (rule.key, rule.mode, rule.ttl)
    key = (False, False, 0) if rule is None else (rule.key, rule.mode, rule.ttl)
    return *key, *(False if limit is None else limit for limit in (extras.start_within, extras.start_by))


def links_of(children: Sequence[Child], short_ids: Mapping[str, str]) -> tuple[str, list[msgspec.Raw]]:
    """Children as scripts take them: letters of policies, or one if all have the same, and their keys in chunks."""
    keys = [f"{child.queue}/{short_ids.get(child.id) or shortened(child.id)}" for child in children]
    if len({*keys}) < len(keys):
        # Of a child that is named twice the first policy holds.
        first = dict(zip(reversed(keys), reversed(children), strict=True))
        keys = [*dict.fromkeys(keys)]
        children = [first[key] for key in keys]
    policies: set[Policy] = {child.policy for child in children}
    letters = "".join([POLICY_CODES[policy] for policy in (policies if len(policies) == 1 else map(_policy, children))])
    chunks = [as_text(pack(keys[at : at + CHUNK_OF_KEYS])) for at in range(0, len(keys), CHUNK_OF_KEYS)]
    return letters, chunks


class Load:
    """Keys and arguments of `add`; with `looks` the script judges the bundles and stores nothing.

    With `is_direct` dedupe keys may be packed in a form that only `add` takes.
    """

    def __init__(
        self, keys: Keys, bundles: Bundles, now: Instant | None, *, looks: bool = False, is_direct: bool = False
    ) -> None:
        packer = JobPacker()
        packed = packer.all(bundles)
        self.queues = packer.queues
        self.keys = tuple(map(keys.queue, self.queues))
        fields = given(now), packer.names, packed, len(self.queues), looks
        dedupe_keys = packer.keys if is_direct else None
        rare = (packer.rare,) if dedupe_keys is None else ((), dedupe_keys)
        self.arguments = pack((*fields, *rare)), packer.texts


def alone(bundles: Bundles) -> NewJob | None:
    """The only job of the call, if it waits like most and has no family: it has a script of its own, `add_one`."""
    if len(bundles) != 1 or len(bundles[0]) != 1:
        return None
    job = bundles[0][0]
    is_usual = not (job.priority or job.lifo or job.delay or job.due_at is not None or job.parents or job.children)
    return job if is_usual else None


def arguments_of(job: NewJob, now: Instant | None) -> tuple[Argument, ...]:
    """The arguments of `add_one`."""
    arguments = shortened(job.id), job.name, _quoted(job.name), _text((job.name, job.data, job.options))[1:]
    if job.tags or job.extras is not None:
        rare = as_text(_extras(job, ())), False, 1, *_rules(job.extras)
        return *arguments, "" if now is None else str(now), pack(rare)
    return arguments if now is None else (*arguments, str(now))


_quoted: Final = lru_cache(maxsize=1024)(as_json)


def answers_of(bundles: Bundles, codes: str, holders: Sequence[bytes] = ()) -> list[list[Added]]:
    """Reads codes; `holders` are the jobs that hold the keys of those that were deduplicated."""
    if codes.count("c") == len(codes):
        return [[Added(job.id, "created") for job in bundle] for bundle in bundles]
    answers: list[list[Added]] = []
    at = 0
    found = iter(holders)
    for bundle in bundles:
        verdicts: list[AddVerdict] = [ADDED[code] for code in codes[at : at + len(bundle)]]
        answers.append(
            [
                Added(text_of(next(found)) if verdict == "deduplicated" else job.id, verdict)
                for job, verdict in zip(bundle, verdicts, strict=True)
            ]
        )
        at += len(bundle)
    return answers
