"""What a harness needs installed: exact versions, one folder for equal lists."""

from __future__ import annotations

import pickle
import tomllib

import pytest

from milo.core.errors import HarnessError
from milo.core.harness import Manifest
from milo.core.packages import Packages

MANIFEST = 'name = "h"\nentry = "python main.py"\n'


def parsed(text: str) -> Packages:
    return Packages.parse(tomllib.loads(text), "harness.toml")


def test_equal_lists_have_one_name_in_whatever_order_they_stand() -> None:
    one = parsed('pip = ["a==1.0", "b[x]==2"]\nnpm = ["@s/c@3.0.1"]')
    assert one == parsed('npm = ["@s/c@3.0.1"]\npip = ["b[x]==2", "a==1.0"]')
    assert len(one.digest) == 12
    assert one.digest != parsed('pip = ["a==1.1", "b[x]==2"]\nnpm = ["@s/c@3.0.1"]').digest
    assert one.digest != parsed('pip = ["a==1.0", "b[x]==2"]').digest
    assert str(one) == "a==1.0, b[x]==2, @s/c@3.0.1"


def test_the_least_python_is_part_of_the_name() -> None:
    newer = parsed('pip = ["a==1"]\npython = "3.12"')
    assert newer.minor == (3, 12) and parsed('pip = ["a==1"]').minor == (0, 0)
    assert newer.digest != parsed('pip = ["a==1"]').digest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('pip = ["a"]', "'packages.pip': expected packages with their exact version"),
        ('pip = ["a>=1"]', "found 'a>=1'"),
        ('pip = ["--index-url=x"]', "exact version"),
        ('pip = ["a==1 -r /etc/passwd"]', "exact version"),
        ('npm = ["a"]', "name@version"),
        ('npm = ["a@latest"]', "found 'a@latest'"),
        ('npm = ["--prefix=x@1"]', "exact version"),
        ('pip = "a==1"', "a list of strings"),
        ('python = "three"', 'a version such as "3.12"'),
        ("cargo = []", "'packages.cargo'"),
    ],
)
def test_what_is_no_list_of_exact_packages_is_refused(text: str, said: str) -> None:
    """What breaks without it: one list would mean other packages on another host."""
    with pytest.raises(HarnessError) as refused:
        parsed(text)
    assert said in str(refused.value)


def test_a_manifest_without_packages_needs_none() -> None:
    assert not Manifest.parse(MANIFEST, "m").packages
    assert str(Packages()) == "no packages"


def test_a_manifest_names_its_packages() -> None:
    manifest = Manifest.parse(MANIFEST + '[packages]\npip = ["a==1"]\n', "m")
    assert manifest.packages == Packages(pip=("a==1",))
    assert pickle.loads(pickle.dumps(manifest)) == manifest
    with pytest.raises(HarnessError, match="key 'packages'"):
        Manifest.parse(MANIFEST + "packages = 1\n", "m")
