"""Where the course lies: the one place that knows addresses, `addresses.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

FILE = Path(__file__).with_name("addresses.toml")


class AddressError(ValueError):
    """An address is missing or is none. The message names the file and the line to fill in."""


@dataclass(frozen=True)
class Addresses:
    """The repository on GitHub, the published site, the wheel, and the branch with the copies for Colab."""

    repository: str
    site: str
    wheel: str
    branch: str

    @property
    def colab(self) -> str:
        """Where Colab opens the copies: to this a path is added."""
        owned = self.repository.removeprefix("https://github.com/")
        return f"https://colab.research.google.com/github/{owned}/blob/{self.branch}"


def addresses(file: Path = FILE) -> Addresses:
    """Read all addresses, without a slash at their ends. Raises AddressError where one is empty, or none."""
    found = tomllib.loads(file.read_text(encoding="utf-8"))
    for field in fields(Addresses):
        value = found.get(field.name, "")
        if not value:
            raise AddressError(f"{file}: `{field.name}` is empty. Fill it in, as its comment says.")
        begins = {"repository": "https://github.com/", "branch": ""}.get(field.name, "https://")
        if not isinstance(value, str) or not value.startswith(begins):
            raise AddressError(f"{file}: `{field.name}` is {value!r}, and should begin with {begins}")
    return Addresses(**{field.name: found[field.name].rstrip("/") for field in fields(Addresses)})
