"""The project on the page about Django, run as its reader would: with a worker of its own, on a real PostgreSQL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.patience import PATIENCE
from tests.stores.databases import new_database

from .pages import DJANGO, ROOT, blocks_of
from .running import NAMED

MORE = "ALLOWED_HOSTS = ['shop.example.com']\nROOT_URLCONF = 'urls'\n"
VISIT = """
import sys, django
django.setup()
from django.test import RequestFactory
from shop.jobs import queue
from shop.models import Order
from shop.views import buy

number = int(sys.argv[1])
before = {job.id for job in queue.sync.find()}
print(buy(RequestFactory().post("/"), number).status_code)
[job] = [job for job in queue.sync.find() if job.id not in before]
print(job.result(timeout=60))
print(Order.objects.get(number=number).is_sent, job.refresh().attempts_started)
"""


LOOK = """
import asyncio, django, httpx
django.setup()
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from shop.asgi import application, pages
from shop.jobs import queue

def session(name, **given):
    user = User.objects.create_user(name, **given)
    made = SessionStore()
    made[SESSION_KEY] = str(user.pk)
    made[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    made[HASH_SESSION_KEY] = user.get_session_auth_hash()
    made.create()
    return made.session_key

queue.sync.add("send_receipt", {"number": 1})
sessions = ["nobody", session("customer"), session("ann", is_staff=True)]

async def look():
    transport = httpx.ASGITransport(application)
    async with pages, httpx.AsyncClient(transport=transport, base_url="http://shop.example.com") as client:
        for each in sessions:
            headers = {"cookie": f"sessionid={each}", "sec-fetch-site": "same-origin"}
            answers = [await client.get("/jobs/queues", headers=headers)]
            answers.append(await client.post("/jobs/queues/receipts/pause", headers=headers))
            print(*(answer.status_code for answer in answers), "receipts" in answers[0].text)
        print((await client.get("/nothing")).status_code)

asyncio.run(look())
print(queue.sync.settings().paused)
"""


class Project:
    def __init__(self, folder: Path, database: str) -> None:
        self.folder, self._database = folder, database
        options = {name: value for name, value in conninfo_to_dict(database).items() if value is not None}
        place = {
            "NAME": options["dbname"],
            "USER": options.get("user"),
            "PASSWORD": options.get("password"),
            "HOST": options.get("host"),
            "PORT": options.get("port"),
            "OPTIONS": {"application_name": "shop"},
        }
        (folder / "here.py").write_text(f"from shop.settings import *\nDATABASES['default'] |= {place!r}\n{MORE}")
        (folder / "visit.py").write_text(VISIT)
        (folder / "look.py").write_text(LOOK)
        (folder / "urls.py").write_text("urlpatterns = []\n")
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "here",
            "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}",
            "ROPEWAY_URL": f"sqlite:///{folder}/ropeway.db",
        }

    def run(self, *arguments: str) -> list[str]:
        ran = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.splitlines()

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *arguments], cwd=self.folder, env=self.environment, stderr=subprocess.PIPE, text=True
        )

    def cut_connections(self, number: int) -> None:
        """As a restart of the database does, once there are so many: those of a program that ended linger."""
        deadline = time.monotonic() + PATIENCE
        with psycopg.connect(self._database, autocommit=True) as connection:
            while (there := self._connections(connection)) != number:
                assert time.monotonic() < deadline, f"{there} connections, not {number}"
                time.sleep(0.02)
            cut = connection.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                " WHERE application_name = 'shop' AND datname = current_database()"
            )
            assert len(cut.fetchall()) == number

    @staticmethod
    def _connections(connection: psycopg.Connection[Any]) -> int:
        there = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'shop' AND datname = current_database()"
        )
        return int(there.fetchall()[0][0])


@pytest.fixture
def project(tmp_path: Path) -> Project:
    for block in blocks_of(DJANGO, "python"):
        named = NAMED.match(block.text)
        assert named, f"{block} is no file of the project, and would not be run"
        file = tmp_path / named[1]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text)
    made = Project(tmp_path, new_database())
    made.run("-m", "django", "migrate", "--run-syncdb", "--verbosity", "0")
    return made


@pytest.fixture(params=[["-m", "ropeway", "worker", "shop.worker:worker"], ["-m", "django", "work"]], ids=" ".join)
def worker(request: pytest.FixtureRequest, project: Project) -> Iterator[subprocess.Popen[str]]:
    process = project.start(*request.param)
    yield process
    process.kill()
    process.communicate()


def test_a_worker_outlives_the_connections_of_its_threads(project: Project, worker: subprocess.Popen[str]):
    assert project.run("visit.py", "1") == ["201", "receipt for order 1", "True 1"]

    project.cut_connections(1)
    assert project.run("visit.py", "2") == ["201", "receipt for order 2", "True 1"]

    worker.send_signal(signal.SIGTERM)
    _, complaints = worker.communicate(timeout=PATIENCE)
    assert worker.returncode == 0, complaints
    assert "Traceback" not in complaints


def test_users_of_the_project_see_the_dashboard(project: Project):
    assert project.run("look.py") == ["307 307 False", "401 401 False", "200 303 True", "404", "True"]
