"""The domain: values and rules. No I/O, no clock, no asyncio."""
