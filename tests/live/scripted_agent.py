"""The program of the agents in live tests: it notes each turn, asks when told to, and follows a script.

A bridge gets a copy of this file. The script of an agent is `AGENT.json` beside it: what it replies to which text, or
to `chose LABEL`; either the reply, or a mapping with `reply` and any of `fails` (how many attempts raise), `needs` (a
file without which it raises) and `waits_for` (a file that it waits for).
"""

import json
import pathlib
import threading
from typing import Any

from mindbridge.agents.turn import Turn

HERE = pathlib.Path(__file__).parent

ASK = """Before I start:

```interactive
{"question": "What approach would you prefer?",
 "options": [{"emoji": "🚀", "label": "Fast and automated", "value": "fast"},
             {"emoji": "🔍", "label": "Careful and manual", "value": "careful"}]}
```
"""


def reply(turn: Turn) -> str:
    with (HERE / "turns.jsonl").open("a", encoding="utf-8") as file:
        file.write(turn.model_dump_json() + "\n")
    if turn.selection is None:
        said = turn.text
        answer = ASK if "ask" in said else f"You said: {said}"
    else:
        label = turn.selection.selected_option.label
        said = f"chose {label}"
        answer = f"You chose {label}."
    script = HERE / f"{turn.agent}.json"
    scripted = json.loads(script.read_text("utf-8")).get(said) if script.exists() else None
    if scripted is None:
        return answer
    plan: dict[str, Any] = {"reply": scripted} if isinstance(scripted, str) else scripted
    if turn.attempt <= plan.get("fails", 0) or not (HERE / plan.get("needs", "")).exists():
        raise RuntimeError("told to fail")
    while not (HERE / plan.get("waits_for", "")).exists():
        threading.Event().wait(0.01)
    return str(plan.get("reply", answer))
