"""Uploads a skill, stores an agent that uses it, and runs that agent."""

import io
import zipfile

from errand import Errand, NotFoundError

SKILL = """---
name: house-style
description: How numbers are given in answers. Use it whenever an answer has numbers.
---
Give every number with two decimals, and name its unit.
"""

archive = io.BytesIO()
with zipfile.ZipFile(archive, "w") as zipped:
    zipped.writestr("house-style/SKILL.md", SKILL)

with Errand() as errand:
    skill = errand.skills.upload(archive.getvalue())  # the same content again makes no new version
    fields = {"system_instruction": "Answer in one sentence.", "tools": ["code_execution"], "skills": [skill.name]}
    try:
        errand.agents.update("analyst", **fields)
    except NotFoundError:
        errand.agents.create(id="analyst", **fields)

    interaction = errand.interactions.create("What is (17 * 23 + 4) / 5?", agent_id="analyst")
    for step in interaction.execution_trace:
        if step.type == "tool_call":
            print("●", step.name, step.args)
    print(interaction.output)
