"""The list of endpoints: what is asked, and what is left out with its line and its reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebilled.errors import InputError
from rebilled.mcp.endpoints import MOST_ENDPOINTS, read_endpoints, set_digest
from rebilled.mcp.target import server_at


def read(*lines: str, **how: bool) -> tuple[list[str], list[tuple[int, str]]]:
    found = read_endpoints("\n".join(lines).encode(), **how)
    return [one.url for one in found.asked], [(one.line, one.reason) for one in found.left_out]


def test_comments_blank_lines_and_line_ends_of_all_kinds_are_passed_over() -> None:
    data = b"\xef\xbb\xbf# list\r\n\r\n  https://a.example/mcp  \r\nhttps://b.example/mcp # ours\n\t\n#https://c.example/\n"
    found = read_endpoints(data)
    assert [(one.line, one.url) for one in found.asked] == [(3, "https://a.example/mcp"), (4, "https://b.example/mcp")]
    assert found.left_out == ()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a.example/mcp", "no_url"),
        ("npx -y @acme/mcp", "no_url"),
        ("ftp://a.example/", "no_url"),
        ("https://", "no_url"),
        ("https://[::1/mcp", "no_url"),
        ("https://a.example:port/", "no_url"),
        ("https://-.example/", "no_url"),
        ("https://a.example/a b", "not_ascii"),
        ("https://bücher.example/", "not_ascii"),
        ("https://a.example/\x1b[31m", "not_ascii"),
        (f"https://a.example/{'a' * 2000}", "too_long"),
        ("https://me@a.example/", "credentials"),
        ("https://me:word@a.example/", "credentials"),
        ("https://a.example/mcp?api_key=k3y", "credentials"),
        ("https://a.example/mcp?x=1&access_token=k3y", "credentials"),
        ("https://a.example/mcp?sig=k3y", "credentials"),
        (f"https://a.example/mcp?x={'k' * 41}", "credentials"),
        (f"https://a.example/mcp?{'k' * 41}", "credentials"),
        ("http://a.example/mcp", "unencrypted"),
        ("http://10.0.0.1/mcp", "unencrypted"),
        ("https://10.0.0.1/mcp", "private_address"),
        ("https://169.254.169.254/latest", "private_address"),
        ("https://[fd00::1]/mcp", "private_address"),
        ("https://[::ffff:10.0.0.1]/mcp", "private_address"),
        ("https://0.0.0.0/mcp", "private_address"),
    ],
)
def test_line_that_cannot_be_asked_is_left_out_with_its_reason(line: str, reason: str) -> None:
    asked, left_out = read("# first", line, "https://good.example/mcp")
    assert asked == ["https://good.example/mcp"]
    assert left_out == [(2, reason)]
    detail = read_endpoints(line.encode()).left_out[0].detail
    assert "k3y" not in detail
    assert "me:word" not in detail
    assert detail.isascii()


@pytest.mark.parametrize(
    "line",
    [
        "https://a.example",
        "https://a.example:8443/deep/mcp/",
        "https://a.example/mcp?transport=http",
        "HTTPS://A.Example/mcp",
        "https://a.example./mcp",
        "https://8.8.8.8/mcp",
        "https://[2001:4860:4860::8888]/mcp",
        "http://127.0.0.1:8000/mcp",
        "http://localhost/mcp",
        "http://[::1]:8000/mcp",
    ],
)
def test_line_that_can_be_asked_is(line: str) -> None:
    assert read(line) == ([line], []) or read(line)[1] == []


def test_private_addresses_are_asked_where_that_is_meant_but_not_without_tls() -> None:
    lines = ("https://10.0.0.1/mcp", "http://10.0.0.1/mcp")
    assert read(*lines, private=True) == (["https://10.0.0.1/mcp"], [(2, "unencrypted")])


@pytest.mark.parametrize(
    "twin",
    [
        "https://a.example/mcp",
        "https://A.EXAMPLE/mcp",
        "https://a.example:443/mcp",
        "https://a.example/mcp/",
        "https://a.example/mcp?x=1",
        "https://a.example/mcp#here",
        "https://a.example./mcp",
    ],
)
def test_endpoint_that_comes_twice_is_asked_once(twin: str) -> None:
    found = read_endpoints(f"https://a.example/mcp\n{twin}\n".encode())
    assert len(found.asked) == 1
    assert [(one.line, one.reason) for one in found.left_out] == [(2, "duplicate")]
    assert "line 1" in found.left_out[0].detail


@pytest.mark.parametrize("other", ["https://a.example/MCP", "https://a.example:8443/mcp", "https://b.example/mcp"])
def test_other_endpoints_are_no_twins(other: str) -> None:
    assert len(read("https://a.example/mcp", other)[0]) == 2


def test_fragment_is_not_sent() -> None:
    assert read("https://a.example/mcp#secret")[0] == ["https://a.example/mcp"]


def test_endpoints_are_grouped_by_host_and_on_this_machine_by_port() -> None:
    found = read_endpoints(b"https://a.example/1\nhttps://a.example:8443/2\nhttp://127.0.0.1:1/\nhttp://127.0.0.1:2/\n")
    assert [len(several) for several in found.hosts.values()] == [2, 1, 1]


def test_file_that_is_no_list_is_told() -> None:
    with pytest.raises(InputError, match="line 2"):
        read_endpoints(b"https://a.example\n\xff\xfe")
    with pytest.raises(InputError, match="larger"):
        read_endpoints(b"#" * (5 << 20))
    many = "\n".join(f"https://a{at}.example/" for at in range(MOST_ENDPOINTS + 1))
    with pytest.raises(InputError, match="split"):
        read_endpoints(many.encode())


def test_set_is_the_same_in_any_order() -> None:
    assert set_digest(["b", "a"]) == set_digest(["a", "b"]) != set_digest(["a"])


@given(st.binary(max_size=300))
def test_any_bytes_are_a_list_or_an_error_with_what_to_do(data: bytes) -> None:
    try:
        found = read_endpoints(data)
    except InputError:
        return
    assert len({one.endpoint_id for one in found.asked}) == len(found.asked)
    for one in found.asked:
        server_at(one.url, None, plain_http=False)


@given(st.text(alphabet="htps:/.@?#[]%&=a1-\x1b <é", max_size=40))
def test_no_url_gets_through_with_a_user_or_to_another_machine_without_tls(text: str) -> None:
    for prefix in ("https://", "http://"):
        for one in read_endpoints((prefix + text).encode()).asked:
            assert "@" not in one.url.partition("://")[2].partition("/")[0].partition("?")[0]
            assert one.url.lower().startswith("https:") or one.host in ("localhost", "127.0.0.1")
