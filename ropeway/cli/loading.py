"""Loading a worker from `module:attr`: mistakes are reported in one line, errors of the app with their traceback."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from ..client.queue import Queue
from ..showing import kind_of
from ..worker.worker import Worker
from .escaping import printable
from .exit_codes import ExitCode
from .sink import tell
from .stores import near

_WHAT_IT_MAY_BE = "a Worker, a Queue, a list of Queues, or a function without arguments that makes one of them"


def load_worker(target: str, app_dir: Path) -> Worker:
    """Imports the module with `app_dir` first on the path, and makes a worker of the attribute.

    From then on `app_dir` is the current folder, of the processes that are started here too: a relative file, such as
    the default store, is the same one wherever the command was typed.
    """
    module_name, colon, path = target.partition(":")
    if not colon or not module_name or not path:
        raise click.UsageError(f"{target!r} is no module:attr, such as app:queue or shop.jobs:worker")
    if module_name.endswith(".py") or "/" in module_name:
        dotted = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise click.UsageError(f"{module_name!r} is a file: write its module, {dotted}:{path}")
    if module_name.startswith("."):
        raise click.UsageError(
            f"{module_name!r} is relative: write the whole name of the module, {module_name.strip('.')}:{path}"
        )
    found = _attribute(_module(module_name, app_dir.resolve()), path)
    return _worker(_made(found, target), target)


def _module(name: str, app_dir: Path) -> Any:
    sys.path.insert(0, str(app_dir))
    os.chdir(app_dir)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{name}.".startswith(f"{missing.name}."):
            _blame_app(missing, f"importing {name}")
        beside = [path.stem for path in app_dir.glob("*") if path.suffix == ".py" or (path / "__init__.py").exists()]
        hint = near(missing.name, beside, "that folder has no modules at all")
        raise click.UsageError(
            f"there is no module {missing.name!r} in {app_dir} or on the path{hint} (--app-dir names another folder)"
        ) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - an app may raise anything
        _blame_app(error, f"importing {name}")


def _attribute(module: Any, path: str) -> Any:
    found = module
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            what = getattr(found, "__name__", path)
            usable = [each for each, value in vars(module).items() if isinstance(value, Queue | Worker)]
            hint = near(name, usable, "it has no Queue and no Worker")
            raise click.UsageError(f"{what!r} has no {name!r}{hint}") from None
        except Exception as error:  # noqa: BLE001 - as above
            _blame_app(error, f"looking for {name}")
    return found


def _made(found: Any, target: str) -> Any:
    if isinstance(found, Queue | Worker) or not callable(found):
        return found
    try:
        inspect.signature(found).bind()
    except (TypeError, ValueError):
        raise click.UsageError(f"{target} needs arguments: give {_WHAT_IT_MAY_BE}") from None
    try:
        made = found()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - as above
        _blame_app(error, f"calling {target}")
    if inspect.iscoroutine(made):
        made.close()
        raise click.UsageError(f"{target} is async: make it a plain function; nothing connects before the worker runs")
    return made


def _worker(found: Any, target: str) -> Worker:
    if isinstance(found, Worker):
        return found
    queues = [found] if isinstance(found, Queue) else _listed(found, target)
    if not queues:
        raise click.UsageError(f"{target} is {kind_of(found)}: give {_WHAT_IT_MAY_BE}")
    return Worker(queues)


def _listed(found: Any, target: str) -> list[Queue]:
    try:
        queues = list(found) if isinstance(found, Iterable) else []
    except Exception as error:  # noqa: BLE001 - as above
        _blame_app(error, f"going through {target}")
    return queues if all(isinstance(queue, Queue) for queue in queues) else []


def _blame_app(error: BaseException, while_doing: str) -> NoReturn:
    """Prints the app's part of the traceback, and exits."""
    trace = traceback.TracebackException.from_exception(error)
    _leave_out_ours(trace)
    tell(printable("".join(trace.format())).rstrip())
    tell(f"Error: the app raised {type(error).__name__} while {while_doing}")
    raise click.exceptions.Exit(ExitCode.APP)


def _leave_out_ours(trace: traceback.TracebackException | None) -> None:
    ours = (f"{Path(__file__).parent}{os.sep}", "<frozen importlib", importlib.__file__)
    while trace is not None:
        frames = [frame for frame in trace.stack if not frame.filename.startswith(ours)]
        trace.stack = traceback.StackSummary.from_list(frames)
        trace = trace.__cause__ or trace.__context__


def narrow(worker: Worker, names: Sequence[str]) -> None:
    """Restricts the worker to the queues of these names."""
    by_name = {queue.name: queue for queue in worker.queues}
    for name in names:
        if name not in by_name:
            raise click.UsageError(f"the app has no queue {name!r}{near(name, by_name)}")
    worker.queues = [by_name[name] for name in dict.fromkeys(names)]
