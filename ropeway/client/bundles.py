"""From the arguments of `add` and `add_many` to bundles for the store, and from its answers to handles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from ..errors import DuplicateJob, InvalidInput, InvalidName
from ..job.flows import Parent
from ..job.names import job_name
from ..job.options import JobOptions, with_phases
from ..job.record import NewJob
from ..showing import shown
from ..store.values import Added
from .handle import JobHandle
from .inputs import refuse_unfilled
from .name_hints import Guided
from .new_jobs import Call, JobRequest, call_of, is_named, new_job, plain_job
from .results import R

if TYPE_CHECKING:
    from .queue import Queue

_NO_OPTIONS: Final[JobOptions] = {}


def job_of(queue: Queue, call: Call[Any], *, is_alone: bool = True, parents: tuple[Parent, ...] = ()) -> NewJob:
    try:
        name = job_name(call.name)
    except InvalidName:
        refuse_function(call.name, "add" if is_alone else "call")
        raise
    of_task = queue.tasks.defaults.get(name)
    defaults = queue.defaults if of_task is None else of_task
    pipeline = queue.pipelines.get(name) if queue.pipelines else None
    if pipeline is not None:
        defaults = {**defaults, **pipeline.options}
    job = new_job(queue.name, name, call.data, call.options, defaults, queue.size_limit, parents, queue.webhook)
    if of_task is not None and call.read_result is None:
        # Added by name; the arguments of `task.call(...)` have been checked.
        queue.tasks.check(name, job.data)
        if is_alone and (inputs := queue.tasks.inputs(name, call.data)):
            refuse_unfilled(name, inputs)
    if pipeline is not None:
        return replace(job, options=with_phases(job.options, pipeline.pipeline.names))
    return job


def has_no_defaults(queue: Queue, name: str) -> bool:
    """True if jobs of this name have only the options that they are given, and belong to no task."""
    if queue.defaults or queue.webhook is not None:
        return False
    return name not in queue.tasks.defaults and name not in queue.pipelines


def refuse_function(given: object, method: str = "add") -> None:
    """For `queue.add(send_email, ...)`, where the name of a job stands elsewhere."""
    if isinstance(given, Guided) and isinstance(name := getattr(given, "name", None), str):
        raise InvalidInput(f"this takes the name of a job, and {given!r} is a task: use {name}.{method}(...)")
    if callable(given):
        problem = f"this takes the name of a job, and not {shown(given)}: make it a task with @queue.task"
        raise InvalidInput(problem)


def bundle_of(queue: Queue, requests: Iterable[JobRequest[R]]) -> tuple[list[JobHandle[R]], list[NewJob]]:
    """Jobs to add, and the handles on them, which `answered` completes."""
    _refuse_no_list(requests)
    handles: list[JobHandle[R]] = []
    bundle: list[NewJob] = []
    plain: set[str] = set()
    """Names that were checked, and whose jobs have no options but their own."""
    for position, request in enumerate(requests):
        name: Any
        data: Any
        call, name, data, options = None, None, None, _NO_OPTIONS
        if type(request) is tuple and len(request) == 2 and type(request[0]) is str and request[0] in plain:
            name, data = request
        elif is_named(request) and request[0] in plain:
            name, data, options = request
        else:
            call = call_of(request, position)
        try:
            if call is not None:
                job = job_of(queue, call)
            elif options:
                job = new_job(queue.name, name, data, options, _NO_OPTIONS, queue.size_limit)
            else:
                job = plain_job(queue.name, name, data, queue.size_limit)
        except InvalidInput as error:
            _name_item(error, position)
            raise
        bundle.append(job)
        if call is None:
            handles.append(JobHandle(queue, job.id, name, data))
        else:
            handles.append(handle_of(queue, call, job.id))
            if has_no_defaults(queue, job.name):
                plain.add(job.name)
    return handles, bundle


def _refuse_no_list(requests: object) -> None:
    if isinstance(requests, str | Call):
        raise InvalidInput(f"add_many takes several jobs, and {shown(requests)} is one: put it in a list")
    if isinstance(requests, Mapping):
        # Iterating it would take its keys for names, and ignore its values.
        raise InvalidInput(
            "add_many takes several jobs, and not a mapping: give mapping.items(), or a list of (name, data)"
        )
    if not isinstance(requests, Iterable):
        raise InvalidInput(f"add_many takes several jobs, and not {shown(requests)}: give a list of (name, data)")


def answered(handles: list[JobHandle[R]], answers: Sequence[Added]) -> list[JobHandle[R]]:
    """The handles, completed by the answers to their jobs. Raises `DuplicateJob` if an id was taken."""
    for position, (handle, answer) in enumerate(zip(handles, answers, strict=True)):
        try:
            note_answer(handle, answer)
        except DuplicateJob as error:
            _name_item(error, position)
            if [other.id for other in answers].count(error.job_id) > 1:
                error.add_note("The bulk itself has this id more than once.")
            raise
    return handles


def handle_of(queue: Queue, call: Call[R], id: str) -> JobHandle[R]:
    if call.read_result is None:
        # By position, which costs half as much.
        return JobHandle(queue, id, call.name, call.data)
    return JobHandle(queue, id, call.name, call.data, read_result=call.read_result)


def note_answer(handle: JobHandle[R], answer: Added) -> JobHandle[R]:
    """Completes the handle on a job by the answer to its add. Raises `DuplicateJob` if the id was taken."""
    verdict = answer.verdict
    if verdict == "created":
        handle.created = True
    elif verdict == "conflict":
        raise DuplicateJob(handle.queue.name, answer.id)
    else:
        handle.id, handle.deduplicated = answer.id, verdict == "deduplicated"
    return handle


def _name_item(error: InvalidInput | DuplicateJob, position: int) -> None:
    error.item = position
    error.add_note(f"This is about item {position}.")
