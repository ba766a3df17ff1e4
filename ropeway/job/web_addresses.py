"""Which internet addresses a webhook may be sent to.

`ipaddress.is_global` is not enough: it lets pass addresses that carry another one inside (NAT64, 6to4, Teredo),
multicast, and the metadata address of a cloud that lies in public space. So IPv6 is allowed by what is given out to the
public, and IPv4 refused by what is not.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

_REFUSED_4: Final = {
    "0.0.0.0/8": "this network",
    "10.0.0.0/8": "private",
    "100.64.0.0/10": "shared by a carrier (CGNAT)",
    "127.0.0.0/8": "loopback",
    "168.63.129.16/32": "the metadata of a cloud",
    "169.254.0.0/16": "link-local, with the metadata of clouds",
    "172.16.0.0/12": "private",
    "192.0.0.0/24": "reserved for protocols",
    "192.0.2.0/24": "for documentation",
    "192.88.99.0/24": "a 6to4 relay",
    "192.168.0.0/16": "private",
    "198.18.0.0/15": "for benchmarks",
    "198.51.100.0/24": "for documentation",
    "203.0.113.0/24": "for documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved",
}
_REFUSED_6: Final = {
    "::1/128": "loopback",
    "::/128": "unspecified",
    "::/96": "an IPv4 address inside",
    "::ffff:0:0/96": "an IPv4 address inside",
    "::ffff:0:0:0/96": "an IPv4 address inside",
    "64:ff9b::/96": "an IPv4 address inside (NAT64)",
    "64:ff9b:1::/48": "an IPv4 address inside (NAT64)",
    "fc00::/7": "private",
    "fe80::/10": "link-local",
    "fec0::/10": "private",
    "ff00::/8": "multicast",
    "2001::/32": "an IPv4 address inside (Teredo)",
    "2001::/23": "reserved for protocols",
    "2001:db8::/32": "for documentation",
    "2002::/16": "an IPv4 address inside (6to4)",
    "3fff::/20": "for documentation",
}
_NETWORKS_4: Final = [(IPv4Network(network), why) for network, why in _REFUSED_4.items()]
_NETWORKS_6: Final = [(IPv6Network(network), why) for network, why in _REFUSED_6.items()]
_PUBLIC_6: Final = IPv6Network("2000::/3")
_ISATAP: Final = (0x00005EFE, 0x02005EFE)
"""The first half of an interface id that has an IPv4 address in its second."""


def address_problem(address: Address) -> str | None:
    """Why nothing is sent to this address; None if it is public."""
    if isinstance(address, IPv4Address):
        return next((why for network, why in _NETWORKS_4 if address in network), None)
    if address.scope_id is not None:
        return "link-local"
    why = next((why for network, why in _NETWORKS_6 if address in network), None)
    if why is None and address not in _PUBLIC_6:
        return "reserved"
    if why is None and (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        return "an IPv4 address inside (ISATAP)"
    return why
