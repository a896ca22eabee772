"""The flow on LangGraph: a node makes the plan, and a model node and a tool node carry it out. Without a checkpointer, which
is the default: nothing is kept."""

from typing import Annotated

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from typing_extensions import TypedDict

import harness


class State(TypedDict):
    """What the graph's nodes share."""

    number: int
    messages: Annotated[list, add_messages]


@tool("GetPerson")
async def get_person(username: str) -> dict:
    """Tells who has a user name."""
    return await harness.get_person(username)


@tool("FindPeople")
async def find_people(name: str) -> dict:
    """Finds people by a part of their name."""
    return await harness.find_people(name)


def start(address: str):
    """Builds the graph once; its nodes share one client."""
    model = ChatOpenAI(model=harness.MODEL, base_url=address, api_key="none", timeout=harness.TIMEOUT)
    planner = model.with_structured_output(harness.Plan)
    tools = [get_person, find_people]
    agent = model.bind_tools(tools)

    async def plan(state: State) -> dict:
        words = [SystemMessage(harness.PLAN_PROMPT), HumanMessage(harness.request(state["number"]))]
        made = await planner.ainvoke(words)
        task = harness.task(state["number"], made)
        return {"messages": [SystemMessage(harness.AGENT_PROMPT), HumanMessage(task)]}

    async def ask(state: State) -> dict:
        return {"messages": [await agent.ainvoke(state["messages"])]}

    graph = StateGraph(State)
    graph.add_node("plan", plan)
    graph.add_node("agent", ask)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "plan")
    graph.add_edge("plan", "agent")
    graph.add_conditional_edges("agent", tools_condition, {"tools": "tools", END: END})
    graph.add_edge("tools", "agent")
    compiled = graph.compile()

    async def flow(number: int) -> str:
        ended = await compiled.ainvoke({"number": number, "messages": []})
        return ended["messages"][-1].content

    return flow


if __name__ == "__main__":
    harness.subject(start)
