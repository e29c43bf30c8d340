"""Who works on which run: a lease that is taken, kept alive, and lost when its worker dies."""

from __future__ import annotations

import dataclasses
from typing import Any

from algolen.store.base import Connected, now, seconds_since
from algolen.store.owner import lost
from algolen.store.rows import Claim, Ending, EnvironmentRow


class Claims(Connected):
    """Claiming runs, reporting in, and finishing them."""

    def claim(
        self,
        run_id: str,
        config_hash: str,
        seed: int,
        steps: int,
        parameters: int | None,
        greedy: bool,
        owner: str,
        environment: EnvironmentRow | None = None,
        again: bool = False,
    ) -> Claim:
        """Take a run unless it is done or a living worker holds it; exactly one of many that ask at once gets it.

        A run that is new, was never started or ended without being done can be taken, and so can one whose worker is
        gone: its process on this machine has ended, or it has not reported in for `GRACE` seconds. With `again`, a run
        that is done can be taken too; its results stay.
        """
        with self.transaction():
            found = self.rows("SELECT * FROM runs WHERE id = ?", [run_id])
            if found and (refused := _refusal(found[0], owner, again)):
                return refused
            values = {
                "status": "running", "owner": owner, "heartbeat_at": now(), "started_at": now(), "finished_at": None,
                "error": None, "steps": steps, "parameters": parameters, "greedy": int(greedy),
                "environment_id": self.add_environment(environment) if environment else None,
            }  # fmt: skip
            attempt = found[0]["attempt"] + 1 if found else 1
            if found:
                self.db.table("runs").update(run_id, {**values, "attempt": attempt})
            else:
                identity = {"id": run_id, "config_hash": config_hash, "seed": seed}
                self.db.table("runs").insert({**identity, **values, "attempt": attempt, "step": 0})
            previous, step = (found[0]["status"], found[0]["step"]) if found else (None, 0)
            return Claim(
                "claimed", run_id, attempt, owner, previous=previous, step=step, row=found[0] if found else None
            )

    def put_back(self, claim: Claim) -> None:
        """Undo a claim: what is recorded of the run is again what it was before, unless its lease was lost."""
        if claim.row is None:
            raise ValueError(f"nothing was recorded of run {claim.run_id} before it was claimed")
        values = {name: value for name, value in claim.row.items() if name not in ("id", "config_hash", "seed")}
        with self.transaction():
            self.db.execute(
                f"UPDATE runs SET {', '.join(f'{name} = ?' for name in values)} WHERE id = ? AND owner = ?",
                [*values.values(), claim.run_id, claim.owner],
            )

    def add_environment(self, environment: EnvironmentRow) -> str:
        """Record where runs are computed; the id of its row."""
        with self.transaction():
            row = {"id": environment.id, **dataclasses.asdict(environment)}
            self.db.table("environments").insert(row, pk="id", ignore=True)
        return environment.id

    def heartbeat(self, run_id: str, owner: str, step: int) -> bool:
        """Say that `owner` still works on a run and how far it is; False if the lease was lost."""
        with self.transaction():
            changed = self.db.execute(
                "UPDATE runs SET heartbeat_at = ?, step = ? WHERE id = ? AND owner = ? AND status = 'running'",
                [now(), step, run_id, owner],
            )
            return changed.rowcount == 1

    def finish(
        self, run_id: str, owner: str, status: Ending, error: str | None, step: int, seconds: float | None
    ) -> bool:
        """Say how a run ended; False if that changed nothing.

        A run that is done stays done. A worker that lost its lease may still say that the run is done, because results
        are deterministic, but not that it failed: someone else is at it.
        """
        with self.transaction():
            changed = self.db.execute(
                "UPDATE runs SET status = ?, owner = ?, error = ?, step = ?, seconds = ?, finished_at = ? "
                "WHERE id = ? AND status != 'done' AND (owner = ? OR ? = 'done')",
                [status, owner, error, step, seconds, now(), run_id, owner, status],
            )
            return changed.rowcount == 1


def _refusal(run: dict[str, Any], asking: str, again: bool) -> Claim | None:
    if run["status"] == "done" and not again:
        return Claim("done", run["id"], run["attempt"], run["owner"], previous="done", step=run["step"])
    if run["status"] != "running" or run["owner"] == asking:
        return None
    if lost(run["owner"], run["heartbeat_at"]):
        return None
    age = seconds_since(run["heartbeat_at"])
    return Claim("held", run["id"], run["attempt"], run["owner"], age, previous="running", step=run["step"])
