"""How editors attach: `.vscode/launch.json`, and the steps in words."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inductor_probe.debugging import jsonc
from inductor_probe.debugging.endpoint import Endpoint
from inductor_probe.errors import ProbeError, UnreadableError
from inductor_probe.files import write_whole

_EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - told apart, not listened on


@dataclass(frozen=True, slots=True)
class LaunchFile:
    """What `.vscode/launch.json` is to become.

    Attributes:
        path: where it is, links followed.
        before: its text now, None where there is no file.
        after: its text with the configuration in it; the same where it has one of that name.
        configuration: the text of the configuration alone.
    """

    path: Path
    before: str | None
    after: str
    configuration: str

    def write(self) -> None:
        """Write it.

        Raises:
            ProbeError: that is not possible; the file is as it was.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ProbeError(f"cannot make {self.path.parent}: {error.strerror or error}") from error
        write_whole(self.path, self.after)


def launch_file(folder: Path, endpoint: Endpoint) -> LaunchFile:
    """Return `folder`'s launch.json with a configuration that attaches to `endpoint`. Nothing is written.

    Raises:
        UnreadableError: there is one, and it cannot be read or is no JSON with comments.
    """
    path = (folder / ".vscode" / "launch.json").resolve()
    entry = _configuration(endpoint, folder)
    shown = json.dumps(entry, indent=4)
    try:
        before = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        before = None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UnreadableError(f"cannot read {path}: {reason}") from error
    if before is None or not before.strip():
        after = json.dumps({"version": "0.2.0", "configurations": [entry]}, indent=4) + "\n"
        return LaunchFile(path, before, after, shown)
    return LaunchFile(path, before, _merged(path, before, entry, shown), shown)


def _merged(path: Path, text: str, entry: dict[str, Any], shown: str) -> str:
    try:
        root = jsonc.read(text)
    except ValueError as error:
        raise UnreadableError(
            f"{path} is no JSON with comments: {error}", "add the configuration by hand"
        ) from error
    if not isinstance(root.value, dict):
        raise UnreadableError(f"{path} is no object of JSON", "add the configuration by hand")
    array = root.members.get("configurations")
    if array is None:
        lines = shown.replace("\n", "\n    ")
        return jsonc.add(text, root, f'"configurations": [\n    {lines}\n]')
    if not isinstance(array.value, list):
        raise UnreadableError(f"the configurations in {path} are no list", "add the configuration by hand")
    names = [one.get("name") for one in array.value if isinstance(one, dict)]
    return text if entry["name"] in names else jsonc.add(text, array, shown)


def _configuration(endpoint: Endpoint, folder: Path) -> dict[str, Any]:
    """Return VS Code's configuration; its name holds the address, so that one of that name is the same."""
    reached = _reached(endpoint)
    entry: dict[str, Any] = {
        "name": f"probe debug {reached}",
        "type": "debugpy",
        "request": "attach",
        "connect": {"host": reached.host, "port": reached.port},
        "justMyCode": False,
    }
    if not reached.is_loopback:  # the editor may run on another machine, with the files elsewhere
        entry["pathMappings"] = [{"localRoot": "${workspaceFolder}", "remoteRoot": str(folder)}]
    return entry


def _reached(endpoint: Endpoint) -> Endpoint:
    return Endpoint(platform.node(), endpoint.port) if endpoint.host in _EVERYWHERE else endpoint


def instructions(endpoint: Endpoint) -> tuple[tuple[str, str], ...]:
    """Return editors, and what to do in each to attach."""
    reached = _reached(endpoint)
    table = (
        f'{{ type = "python", request = "attach", justMyCode = false, '
        f'connect = {{ host = "{reached.host}", port = {reached.port} }} }}'
    )
    return (
        ("VS Code", f'Run and Debug, "probe debug {reached}"'),
        ("PyCharm", f"Run, Edit Configurations, Attach to DAP: remote address {reached}"),
        ("nvim-dap", f':lua require("dap").run({table})'),
    )
