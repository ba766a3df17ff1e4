"""TLS to servers: whom to trust, and what to show of ourselves."""

from __future__ import annotations

import ssl

from ..errors import InvalidOption


def tls_context(ca_file: str | None, cert_file: str | None, key_file: str | None) -> ssl.SSLContext:
    """For a client that checks certificates and names; without `ca_file` it trusts whom the system trusts."""
    try:
        context = ssl.create_default_context(cafile=ca_file)
        if cert_file is not None:
            context.load_cert_chain(cert_file, key_file)
    except OSError as error:
        files = ", ".join(filter(None, (ca_file, cert_file, key_file)))
        raise InvalidOption("url", f"names certificates that cannot be read ({files}): {error}") from error
    return context
