"""The runtime: small services, one loop and one duty each."""
