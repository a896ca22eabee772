"""What the compared Python programs have in common: the flow, the load, and the orders that `benches/peers/run` gives."""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

from pydantic import BaseModel

MODEL = "instant"
# Seconds, for connecting as well: with a thousand flows on one event loop the usual 5 s pass before a connection is served.
TIMEOUT = 600.0
# The provider recognises its first words.
PLAN_PROMPT = (
    "You plan how a request is carried out. Give the steps in their order, each with its purpose and the tool that serves "
    "it. The tools: GetPerson tells who has a user name; FindPeople finds people by a part of their name."
)
AGENT_PROMPT = (
    "You tell who the people of the company are. Carry out the plan with the tools, and then answer in one sentence. Never "
    "guess a name: tell what the tools return."
)
ANSWER = "mrossi is Mario Rossi (Sales), and Ferrari is Lucia Ferrari (lferrari, Engineering)."

tool_calls = 0
flows = 0


class PlanStep(BaseModel):
    """A step of a plan."""

    purpose: str
    tool: str


class Plan(BaseModel):
    """A plan."""

    reasoning: str
    steps: list[PlanStep]


def request(number: int) -> str:
    """The user's words. No two flows have the same."""
    return f"Who is mrossi, and who is called Ferrari? Ticket {number}"


def task(number: int, plan: Plan) -> str:
    """The words of the model that has the tools: the request, and the plan."""
    if len(plan.steps) != 2:
        raise ValueError(f"a plan of two steps was expected, not {plan!r}")
    steps = "".join(f"\n- {step.purpose} ({step.tool})" for step in plan.steps)
    return f"{request(number)}\n\nPlan:{steps}"


async def get_person(username: str) -> dict:
    """Tells who has a user name."""
    global tool_calls
    tool_calls += 1
    return {"found": True, "username": username, "name": "Mario Rossi", "you": False}


async def find_people(name: str) -> dict:
    """Finds people by a part of their name."""
    global tool_calls
    tool_calls += 1
    found = {"username": "lferrari", "name": "Lucia Ferrari", "department": "Engineering"}
    return {"name": name, "count": 1, "matches": [found], "more": False}


async def _session(flow: Callable[[int], Awaitable[str]], least: int, end: float, took: list[float]) -> None:
    global flows
    done = 0
    while done < least or time.perf_counter() < end:
        flows += 1
        begun = time.perf_counter()
        answer = await flow(flows)
        took.append((time.perf_counter() - begun) * 1000)
        if answer != ANSWER:
            raise ValueError(f"an unexpected answer: {answer}")
        done += 1


async def _drive(flow: Callable[[int], Awaitable[str]], load: dict) -> dict:
    before = tool_calls
    took: list[float] = []
    begun = time.perf_counter()
    end = begun + load["millis"] / 1000
    await asyncio.gather(*(_session(flow, load["least"], end, took) for _ in range(load["sessions"])))
    seconds = time.perf_counter() - begun
    took.sort()
    return {
        "flows": len(took),
        "seconds": seconds,
        "p50_ms": took[int(0.5 * (len(took) - 1))],
        "p99_ms": took[int(0.99 * (len(took) - 1))],
        "tool_calls": tool_calls - before,
    }


def subject(start: Callable[[str], Callable[[int], Awaitable[str]]]) -> None:
    """Carries out loads, one for each line of standard input, against the address in the first argument."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    flow = start(f"http://{sys.argv[1]}/v1")
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        try:
            said = loop.run_until_complete(_drive(flow, json.loads(line)))
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said), flush=True)
