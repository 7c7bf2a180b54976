"""Which hosts a task's list lets through, and what a proxy understands of a request."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from milo.rollout.egress import Allowed, proxy_variables, read_request

LISTED = Allowed(["index.example.io", "*.Example.com.", "10.1.0.0/16", "192.0.2.7", "fd00::/8"])


@pytest.mark.parametrize(
    "host",
    [
        "index.example.io",
        "Index.Example.io.",
        "a.example.com",
        "a.b.example.com",
        "10.1.2.3",
        "fd00::1",
    ],
)
def test_hosts_on_the_list_are_known_by_name_pattern_and_address(host: str) -> None:
    assert LISTED.names(host)


@pytest.mark.parametrize(
    "host",
    [
        *(
            "files.index.example.io",
            "index.example.io.evil.net",
            "example.com",
            "badexample.com",
            "10.2.0.1",
        ),
        *("192.0.2.8", "", "*", "*.example.com.evil", "0x0a010203", "::1"),
    ],
)
def test_other_hosts_are_not(host: str) -> None:
    assert not LISTED.names(host)


def test_an_empty_list_lets_nothing_through() -> None:
    assert not any(Allowed([]).names(host) for host in ("a.b", "127.0.0.1"))


@pytest.mark.parametrize(
    ("address", "admitted"),
    [
        ("93.184.216.34", True),
        ("10.9.9.9", True),
        ("127.0.0.1", False),
        ("169.254.169.254", False),
        ("0.0.0.0", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
        ("224.0.0.1", False),
    ],
)
def test_a_listed_name_never_stands_for_this_machine(address: str, admitted: bool) -> None:
    """Whoever owns the name decides on its address: it must not lead to what only we may reach."""
    assert LISTED.admits(ip_address(address)) is admitted
    assert Allowed([address]).admits(ip_address(address)), "unless the list holds the address"


def test_a_tunnel_is_asked_for_by_host_and_port() -> None:
    request = read_request(b"CONNECT index.example.io:443 HTTP/1.1\r\nHost: other\r\n\r\n")
    assert (request.host, request.port, request.tunnel) == ("index.example.io", 443, True)
    assert read_request(b"CONNECT [fd00::1]:443 HTTP/1.1\r\n\r\n").host == "fd00::1"


def test_plain_http_is_passed_on_once_and_to_the_host_of_its_address_alone() -> None:
    head = b"GET http://u:p@index.example.io:81/a?b=c HTTP/1.1\r\nHost: evil\r\nAccept: x\r\n"
    request = read_request(head + b"Proxy-Authorization: y\r\nConnection: keep-alive\r\n\r\n")
    assert (request.host, request.port, request.tunnel) == ("index.example.io", 81, False)
    assert request.head == (
        b"GET /a?b=c HTTP/1.1\r\nHost: index.example.io:81\r\nAccept: x\r\nConnection: close\r\n"
        b"\r\n"
    )


@pytest.mark.parametrize(
    "head",
    [
        *(b"GET / HTTP/1.1", b"GET https://a.b/ HTTP/1.1", b"CONNECT a.b HTTP/1.1", b"nonsense"),
        *(b"CONNECT a.b:x HTTP/1.1", b"CONNECT :443 HTTP/1.1", b"GET http:///x HTTP/1.1"),
    ],
)
def test_what_is_no_request_for_a_proxy_is_refused(head: bytes) -> None:
    with pytest.raises(ValueError):
        read_request(head + b"\r\n\r\n")


def test_programs_find_the_proxy_in_either_spelling_and_the_gateway_without_it() -> None:
    told = proxy_variables(99)
    assert told["https_proxy"] == told["HTTP_PROXY"] == "http://127.0.0.1:99"
    assert "127.0.0.1" in told["NO_PROXY"].split(",")
