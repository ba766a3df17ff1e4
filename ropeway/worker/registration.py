"""The type of `@worker.handler(job_type)`, for type checkers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar, overload

from .job import Job
from .thread_job import SyncJob

D = TypeVar("D")
R = TypeVar("R")


class TypedRegistration(Protocol[D, R]):
    """Takes a function of the job type's data, or of the job and its data, that returns the job type's result."""

    @overload
    def __call__(self, function: Callable[[D], Awaitable[R]], /) -> Callable[[D], Awaitable[R]]: ...
    @overload
    def __call__(self, function: Callable[[Job, D], Awaitable[R]], /) -> Callable[[Job, D], Awaitable[R]]: ...
    @overload
    def __call__(self, function: Callable[[D], R], /) -> Callable[[D], R]: ...
    @overload
    def __call__(self, function: Callable[[SyncJob, D], R], /) -> Callable[[SyncJob, D], R]: ...
