from tests.client.fixtures import (
    make_queue,
    new_handle,
    pytest_generate_tests,
    queue,
    store,
    tampered_queue,
    tampering,
)

__all__ = ["make_queue", "new_handle", "pytest_generate_tests", "queue", "store", "tampered_queue", "tampering"]
