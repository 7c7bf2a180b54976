"""The grammar of `milo seed`; what the commands do is loaded when one of them is called."""

from __future__ import annotations

import argparse

OK = 0


def add_seeds(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `milo seed add` and `list`."""
    seed = commands.add_parser("seed", help="harnesses to start from")
    kinds = seed.add_subparsers(dest="seed_command", required=True, metavar="COMMAND")
    add = kinds.add_parser("add", help="bring an expert harness, a folder or a git repository")
    add.add_argument("what", metavar="SEED", help="NAME[==VERSION], PATH or git+URL[@REF]")
    add.add_argument("--as", default="", metavar="NAME", dest="name", help="under another name")
    add.set_defaults(handler=_add)
    listing = kinds.add_parser("list", help="which there are, and what is editable in each")
    listing.set_defaults(handler=_list)


def _add(args: argparse.Namespace) -> int:
    from milo.app.seed_tools import add

    return add(args.what, args.name)


def _list(_: argparse.Namespace) -> int:
    from milo.app.seed_tools import listing

    print(listing())
    return OK
