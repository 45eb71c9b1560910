# Made by clients/python/generate.ts from the server’s OpenAPI document.
"""The objects of the API."""

from __future__ import annotations

from typing import Any, Literal

from .records import Record


class Event(Record):
    """One event of a stream: its number, its name, its data. There may be names that this version does not know."""

    id: int
    event: str
    data: Record


class Agent(Record):
    """A stored agent configuration."""

    id: str
    agent_id: str
    display_name: str | None
    description: str | None
    system_instruction: str | None
    model: str
    tools: list[str]
    skills: list[str]
    mcp: list[McpServerAnswer]
    network: Literal["disabled", "public"] | Record | None
    policy: PolicyAnswer
    reasoning: ReasoningAnswer | None
    temperature: float | None
    verbosity: Literal["low", "medium", "high"] | None
    labels: dict[str, Any]
    version: int
    create_time: str
    update_time: str
    etag: str
    warnings: list[Warning] | None


class Approval(Record):
    """A decision on pending tool calls. An empty object approves all of them."""

    step: int | None
    approve: bool | None
    reason: str | None
    decisions: list[Record] | None


class AuditEntry(Record):
    """A host that the interaction connected to, or tried to."""

    time: str
    kind: str
    host: str
    port: int
    outcome: Literal["dialled", "refused", "unresolved"]
    count: int


class ContextPolicy(Record):
    """When and how a long conversation is shortened to fit the model’s context window. The trace keeps everything."""

    compact_at: float | None
    keep_tokens: int | None
    instructions: str | None


class ContextPolicyAnswer(Record):
    """How a long conversation is shortened for the model."""

    compact_at: float | None
    keep_tokens: int | None
    instructions: str | None


class Credential(Record):
    """A stored credential, without its secret."""

    id: str
    name: str | None
    type: str
    allowed_hosts: list[str] | None
    create_time: str
    update_time: str
    last_used_time: str | None
    warnings: list[Record] | None


class Delivery(Record):
    """Delivery"""

    attempt: int
    time: str
    duration_ms: int
    status: int | None
    error: str | None


class FullResult(Record):
    """The file in the sandbox with the whole text of a long result. The model got its beginning and end. `output` has the text up to `policy.sandbox.outputBytes`."""

    path: str
    bytes: int


class HeaderInjection(Record):
    """A header with a credential that is added to each request to a host, outside the sandbox. Programs in the sandbox use the credential but can’t read it."""

    host: str
    header: str | None
    credential_id: str
    format: str | None


class InputFile(Record):
    """A file for the sandbox. Give exactly one of `content`, `data` and `url`."""

    name: str
    content: str | None
    encoding: Literal["utf-8", "base64"] | None
    data: str | None
    url: str | None
    mime_type: str | None


class Interaction(Record):
    """One run of an agent."""

    interaction_id: str
    id: str
    status: Literal["running", "completed", "failed", "cancelled"]
    stage: Literal["queued", "provisioning", "working", "requires_action", "settling"] | None
    agent_id: str | None
    agent_version: int | None
    model: str
    instruction: str
    previous_interaction_id: str | None
    retry_of: str | None
    labels: dict[str, Any]
    create_time: str
    end_time: str | None
    stop_reason: Literal["end_turn", "max_output_tokens", "max_cost", "budget_exceeded", "max_model_calls", "max_turn_duration", "content_filter"] | None
    error: RunError | None
    usage: Usage
    output: str
    execution_trace: list[TraceStep]
    files: list[OutputFile]
    warnings: list[Warning]
    pending_approvals: list[Record] | None
    resolved: Record


class InteractionInWebhook(Record):
    """The short interaction, without the instruction and the output."""

    interaction_id: str
    id: str
    status: Literal["running", "completed", "failed", "cancelled"]
    agent_id: str | None
    agent_version: int | None
    model: str
    previous_interaction_id: str | None
    retry_of: str | None
    labels: dict[str, Any]
    create_time: str
    end_time: str | None
    stop_reason: Literal["end_turn", "max_output_tokens", "max_cost", "budget_exceeded", "max_model_calls", "max_turn_duration", "content_filter"] | None
    error: RunError | None
    usage: Record


class InteractionSummary(Record):
    """An interaction without the fields that can be long: `output`, `executionTrace`, `files`, `warnings`, `resolved`."""

    interaction_id: str
    id: str
    status: Literal["running", "completed", "failed", "cancelled"]
    stage: Literal["queued", "provisioning", "working", "requires_action", "settling"] | None
    agent_id: str | None
    agent_version: int | None
    model: str
    instruction: str
    previous_interaction_id: str | None
    retry_of: str | None
    labels: dict[str, Any]
    create_time: str
    end_time: str | None
    stop_reason: Literal["end_turn", "max_output_tokens", "max_cost", "budget_exceeded", "max_model_calls", "max_turn_duration", "content_filter"] | None
    error: RunError | None
    usage: Usage


class McpServer(Record):
    """An MCP server."""

    name: str
    url: str | None
    authentication: Any | Record | str | None
    allowed_tools: list[str] | None
    require_approval: Any | Literal["always", "never", "unless_skill"] | bool | list[str] | None


class McpServerAnswer(Record):
    """An MCP server, without secrets."""

    name: str
    url: str | None
    authentication: Record | None
    allowed_tools: list[str] | None
    require_approval: Any


class OutputFile(Record):
    """A file that the agent wrote."""

    name: str
    url: str
    size: int
    mime_type: str
    sha256: str


class Policy(Record):
    """Limits of a run. Absent fields get the server’s default."""

    max_turn_duration: int | None
    max_output_tokens: int | None
    max_cost: float | None
    max_tool_duration: int | None
    sandbox: Any | SandboxPolicy | None
    context: Any | ContextPolicy | None


class PolicyAnswer(Record):
    """Limits of a run, in seconds, tokens and US dollars."""

    max_turn_duration: int | None
    max_output_tokens: int | None
    max_cost: float | None
    max_tool_duration: int | None
    sandbox: SandboxPolicyAnswer | None
    context: ContextPolicyAnswer | None


class Reasoning(Record):
    """How much the model reasons before it answers."""

    effort: Literal["none", "low", "medium", "high", "max"] | None


class ReasoningAnswer(Record):
    """How much the model reasons before it answers."""

    effort: Literal["none", "low", "medium", "high", "max"] | None


class RunError(Record):
    """Why a run failed."""

    code: str
    message: str
    status: int
    retryable: bool


class SandboxPolicy(Record):
    """Limits of the run’s sandbox. If one stops a step, the model and the trace show which."""

    memory_mi_b: int | None
    cpus: float | None
    pids: int | None
    workspace_mi_b: int | None
    files: int | None
    output_bytes: int | None


class SandboxPolicyAnswer(Record):
    """Limits of the run’s sandbox."""

    memory_mi_b: int | None
    cpus: float | None
    pids: int | None
    workspace_mi_b: int | None
    files: int | None
    output_bytes: int | None


class Server(Record):
    """The server: version, sandbox, models, tools and limits."""

    version: str
    sandbox: Record
    models: list[Record]
    default_model: str
    tools: Record
    search: str | None
    limits: Record


class Skill(Record):
    """A named, versioned set of instructions, scripts and reference files."""

    name: str
    version: int
    description: str
    license: str | None
    compatibility: str | None
    metadata: dict[str, Any]
    allowed_tools: list[str]
    source: Literal["project", "server"]
    digest: str
    size: int
    file_count: int
    create_time: str
    update_time: str
    versions: list[int] | None
    files: list[Record] | None
    warnings: list[Record] | None


class SkillFile(Record):
    """A file of a skill."""

    path: str
    size: int
    text: str | None


class SkillSummary(Record):
    """One version of a skill."""

    name: str
    version: int
    description: str
    license: str | None
    compatibility: str | None
    metadata: dict[str, Any]
    allowed_tools: list[str]
    source: Literal["project", "server"]
    digest: str
    size: int
    file_count: int
    create_time: str
    update_time: str


class StoredInputFile(Record):
    """An input file of the run."""

    name: str
    url: str
    size: int
    mime_type: str
    sha256: str


class TraceStep(Record):
    """One step of the run. A tool call and its result have one `step` number each. If one reply of the model has several calls, these and their results have a `callId`; otherwise each result follows its call."""

    step: int
    type: Literal["reasoning"] | Literal["tool_call"] | Literal["tool_result"]
    content: str | None
    name: str | None
    args: dict[str, Any] | str | None
    call_id: str | None
    via: int | None
    output: str | None
    duration_ms: int | None
    full: FullResult | None


class Usage(Record):
    """Resources that the run has used so far, also if it failed or was cancelled. The short form has only `input_tokens` and `output_tokens`."""

    input_tokens: int
    output_tokens: int
    total_tokens: int | None
    duration_ms: int | None
    cached_input_tokens: int | None
    cache_write_tokens: int | None
    reasoning_tokens: int | None
    model_calls: int | None
    tool_calls: int | None
    sandbox_ms: int | None
    cost: Record | None


class Warning(Record):
    """Something in the request that was ignored: `unknown_field`, `unknown_parameter`, `unknown_tool`, `tool_unavailable`, `unknown_skill`, `mcp_unavailable` …"""

    code: str
    param: str | None
    message: str


class WebhookEvent(Record):
    """The body of a webhook request."""

    type: Literal["interaction.completed", "interaction.failed", "interaction.cancelled"]
    timestamp: str
    data: InteractionInWebhook
