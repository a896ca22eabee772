"""The flow on Pydantic AI: an agent with a structured output makes the plan, and an agent with two tools carries it out."""

from pydantic_ai import Agent, Tool
from pydantic_ai.models import create_async_httpx2_client
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import harness


def start(address: str):
    """Builds both agents once; they share one client."""
    # Its usual client with another timeout.
    http = create_async_httpx2_client(timeout=harness.TIMEOUT)
    provider = OpenAIProvider(base_url=address, api_key="none", http_client=http)
    model = OpenAIChatModel(harness.MODEL, provider=provider)
    planner = Agent(model, output_type=harness.Plan, instructions=harness.PLAN_PROMPT)
    tools = [Tool(harness.get_person, name="GetPerson"), Tool(harness.find_people, name="FindPeople")]
    agent = Agent(model, tools=tools, instructions=harness.AGENT_PROMPT)

    async def flow(number: int) -> str:
        planned = await planner.run(harness.request(number))
        answered = await agent.run(harness.task(number, planned.output))
        return answered.output

    return flow


if __name__ == "__main__":
    harness.subject(start)
