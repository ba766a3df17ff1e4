from uuid import UUID

from ropeway.job.ids import new_id, new_token, new_worker_id
from ropeway.job.names import job_id


def test_ids_are_unique_and_in_the_order_of_their_making():
    ids = [new_id() for _ in range(10_000)]

    assert len(set(ids)) == 10_000
    assert ids == sorted(ids)


def test_an_id_is_a_uuid_of_version_7_and_may_be_a_job_s():
    id = new_id()

    assert UUID(id).version == 7
    assert job_id(id) == id


def test_tokens_cannot_be_guessed():
    tokens = {new_token() for _ in range(1_000)}

    assert len(tokens) == 1_000
    assert {len(token) for token in tokens} == {32}


def test_workers_of_one_process_have_names_of_their_own():
    assert new_worker_id() != new_worker_id()
