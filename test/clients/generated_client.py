"""Uses the package that openapi-python-client makes from a server's OpenAPI document, for every kind of call but streams."""

import io
import json
import os
import sys

from errand_api_client import AuthenticatedClient
from errand_api_client.api.agents import create_agent, delete_agent, list_agents
from errand_api_client.api.interactions import (
    cancel_interaction,
    create_interaction,
    delete_interaction,
    get_interaction,
    list_interactions,
)
from errand_api_client.api.skills import upload_skill
from errand_api_client.models import (
    Agent,
    Error,
    GetInteractionView,
    Interaction,
    NewAgent,
    NewInteraction,
    ReasoningStep,
    SkillUpload,
    ToolCallStep,
    ToolResultStep,
)
from errand_api_client.types import File

client = AuthenticatedClient(
    base_url=os.environ["ERRAND_BASE_URL"],
    token=os.environ["ERRAND_API_KEY"],
    prefix="",
    auth_header_name="x-svc-api-key",
    timeout=60,
)

agent = create_agent.sync(client=client, body=NewAgent(id="analyst", tools=["code_execution"]))
assert isinstance(agent, Agent), agent
assert [each.id for each in list_agents.sync(client=client).agents] == ["analyst"]

run = create_interaction.sync(client=client, body=NewInteraction(instruction="[works]", agent_id="analyst"))
assert isinstance(run, Interaction), run
reasoning, call, result = run.execution_trace
assert isinstance(reasoning, ReasoningStep) and isinstance(call, ToolCallStep) and isinstance(result, ToolResultStep)
assert call.args.additional_properties == {"code": "print(6 * 7)"}, call
assert result.output.strip() == "42", result

again = get_interaction.sync(run.id, client=client)
assert isinstance(again, Interaction) and again.output == run.output and again.usage.to_dict() == run.usage.to_dict()
assert run.id in [each.id for each in list_interactions.sync(client=client, page_size=5).interactions]
short = get_interaction.sync(run.id, client=client, view=GetInteractionView.SHORT)
assert json.loads(short.execution_trace[1].args) == {"code": "print(6 * 7)"}

late = cancel_interaction.sync(run.id, client=client)
assert isinstance(late, Error) and late.error.code.value == "conflict", late
assert isinstance(get_interaction.sync("int_none", client=client), Error)

with open(sys.argv[1], "rb") as file:
    upload = SkillUpload(file=File(payload=io.BytesIO(file.read()), file_name="greeting.zip"))
skill = upload_skill.sync(client=client, body=upload)
assert skill.name == "greeting", skill

assert delete_interaction.sync_detailed(run.id, client=client).status_code == 200
assert isinstance(get_interaction.sync(run.id, client=client), Error)
assert delete_agent.sync_detailed("analyst", client=client).status_code == 200
print(run.output)
