"""Which process on which machine owns a run, so that a run whose process is gone can be closed."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
from contextlib import suppress
from pathlib import Path


def host() -> str:
    """The name of this host, and a hash of where process ids mean the same: the machine and its pid namespace."""
    place = ""
    with suppress(OSError):
        place = os.readlink("/proc/self/ns/pid")
        place += Path("/etc/machine-id").read_text(encoding="ascii")
    return f"{socket.gethostname()}-{hashlib.sha256(place.encode()).hexdigest()[:8]}"


def process_started(pid: int) -> str:
    """When the process began, in the words of its system, so that a reused pid is another process.

    "gone" when there is no such process, or it is dead and not yet waited for; "" where this cannot be known (Windows).
    """
    if Path("/proc/self/stat").exists():
        try:
            line = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            return "gone"
        # The command, in parentheses, may hold spaces; the start time is field 22 (proc_pid_stat(5)).
        state, *fields = line.rpartition(b")")[2].decode("ascii").split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return "gone" if state in "ZX" else f"{boot}:{fields[18]}"
    try:
        command = ["ps", "-o", "lstart=", "-p", str(pid)]
        listed = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    except OSError:
        return ""
    return listed.stdout.strip() or "gone"
