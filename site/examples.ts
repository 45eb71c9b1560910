/**
 * The examples of the API reference by operation: curl from the OpenAPI document, TypeScript and Python from this table.
 * test/docs/examples.test.ts runs them in this order, exactly as they are shown.
 */
import type { JsonObject } from '../src/http/openapi/openapi.ts'
import { writtenJson } from './json.ts'

/** An operation of the OpenAPI document. */
export interface Operation {
  readonly method: string
  readonly path: string
  readonly doc: JsonObject
}

/** The first lines of every example. `interactionId` is the id of an interaction, like `int_0Wb1xYz3kJ9mQ2pR5sT7uV`. */
export const BEGINNINGS = {
  sh: `export ERRAND_BASE_URL=http://127.0.0.1:8080
export ERRAND_API_KEY=errand_sk_…`,
  ts: `import { Errand } from 'errand-client'

const errand = new Errand() // ERRAND_BASE_URL and ERRAND_API_KEY, or { baseUrl, apiKey }`,
  python: `from errand import Errand

errand = Errand()  # ERRAND_BASE_URL and ERRAND_API_KEY, or Errand(base_url=…, api_key=…)`,
}

export interface Example {
  /** Operation id. */
  readonly id: string
  /** Body of the request in curl. Default: the example in the OpenAPI document. */
  readonly body?: JsonObject
  readonly ts: string
  readonly python: string
}

const CALLS: readonly Example[] = [
  {
    id: 'createAgent',
    body: { id: 'analyst', systemInstruction: 'Answer in one sentence.', tools: ['code_execution', 'file_read'] },
    ts: `const agent = await errand.agents.create({
  id: 'analyst',
  systemInstruction: 'Answer in one sentence.',
  tools: ['code_execution', 'file_read'],
})
console.log(agent.version)`,
    python: `agent = errand.agents.create(
    id="analyst",
    system_instruction="Answer in one sentence.",
    tools=["code_execution", "file_read"],
)
print(agent.version)`,
  },
  {
    id: 'listAgents',
    ts: `for await (const agent of errand.agents.list()) console.log(agent.id)`,
    python: `for agent in errand.agents.list():
    print(agent.id)`,
  },
  {
    id: 'getAgent',
    ts: `const agent = await errand.agents.retrieve('analyst')
console.log(agent.systemInstruction)`,
    python: `agent = errand.agents.retrieve("analyst")
print(agent.system_instruction)`,
  },
  {
    id: 'updateAgent',
    body: { systemInstruction: 'Answer in two sentences.', description: null },
    ts: `const { etag } = await errand.agents.retrieve('analyst')
await errand.agents.update('analyst', { systemInstruction: 'Answer in two sentences.', description: null }, { etag })`,
    python: `agent = errand.agents.retrieve("analyst")
errand.agents.update("analyst", etag=agent.etag, system_instruction="Answer in two sentences.", description=None)`,
  },
  {
    id: 'listAgentVersions',
    ts: `for await (const { version, updateTime } of errand.agents.versions('analyst')) console.log(version, updateTime)`,
    python: `for agent in errand.agents.versions("analyst"):
    print(agent.version, agent.update_time)`,
  },
  {
    id: 'getAgentVersion',
    ts: `const first = await errand.agents.version('analyst', 1)
console.log(first.systemInstruction)`,
    python: `first = errand.agents.version("analyst", 1)
print(first.system_instruction)`,
  },
  {
    id: 'createInteraction',
    body: { instruction: 'What is 17 * 23?', tools: ['code_execution'] },
    ts: `const interaction = await errand.interactions.create({
  instruction: 'What is 17 * 23?',
  tools: ['code_execution'],
})
console.log(interaction.output)`,
    python: `interaction = errand.interactions.create("What is 17 * 23?", tools=["code_execution"])
print(interaction.output)`,
  },
  {
    id: 'createInteractionStream',
    body: { instruction: 'What is 17 * 23?', tools: ['code_execution'] },
    ts: `const stream = errand.interactions.stream({ instruction: 'What is 17 * 23?', tools: ['code_execution'] })
for await (const event of stream) {
  if (event.event === 'tool_call') console.log(event.data.name, event.data.args)
  if (event.event === 'partial_output') process.stdout.write(event.data.text)
}`,
    python: `for event in errand.interactions.stream("What is 17 * 23?", tools=["code_execution"]):
    if event.event == "tool_call":
        print(event.data.name, event.data.args)
    elif event.event == "partial_output":
        print(event.data.text, end="")`,
  },
  {
    id: 'listInteractions',
    ts: `for await (const run of errand.interactions.list({ status: 'completed' })) console.log(run.id, run.instruction)`,
    python: `for run in errand.interactions.list(status="completed"):
    print(run.id, run.instruction)`,
  },
  {
    id: 'getInteraction',
    ts: `const interaction = await errand.interactions.retrieve(interactionId)
console.log(interaction.status, interaction.usage)`,
    python: `interaction = errand.interactions.retrieve(interaction_id)
print(interaction.status, interaction.usage)`,
  },
  {
    id: 'streamInteraction',
    ts: `for await (const event of errand.interactions.events(interactionId, { after: 2 })) console.log(event.id, event.event)`,
    python: `for event in errand.interactions.events(interaction_id, after=2):
    print(event.id, event.event)`,
  },
  {
    id: 'listEvents',
    ts: `for await (const event of errand.interactions.events(interactionId)) console.log(event.id, event.event)`,
    python: `for event in errand.interactions.events(interaction_id):
    print(event.id, event.event)`,
  },
  {
    id: 'listAudit',
    ts: `for await (const contact of errand.interactions.audit(interactionId)) console.log(contact)`,
    python: `for contact in errand.interactions.audit(interaction_id):
    print(contact.raw)`,
  },
  {
    id: 'listDeliveries',
    ts: `console.log(await errand.interactions.deliveries(interactionId))`,
    python: `print(errand.interactions.deliveries(interaction_id).raw)`,
  },
  {
    id: 'cancelInteraction',
    ts: `const interaction = await errand.interactions.cancel(interactionId)
console.log(interaction.status)`,
    python: `interaction = errand.interactions.cancel(interaction_id)
print(interaction.status)`,
  },
  {
    id: 'approveInteraction',
    body: { approve: true },
    ts: `const { pendingApprovals } = await errand.interactions.retrieve(interactionId)
console.log(pendingApprovals)
await errand.interactions.approve(interactionId, { approve: true })`,
    python: `print(errand.interactions.retrieve(interaction_id).pending_approvals)
errand.interactions.approve(interaction_id, approve=True)`,
  },
  {
    id: 'createCredential',
    body: { id: 'tracker', type: 'bearer', token: 'a-secret', allowedHosts: ['tracker.example'] },
    ts: `await errand.credentials.create({
  id: 'tracker',
  type: 'bearer',
  token: 'a-secret',
  allowedHosts: ['tracker.example'],
})`,
    python: `errand.credentials.create(id="tracker", type="bearer", token="a-secret", allowed_hosts=["tracker.example"])`,
  },
  {
    id: 'listCredentials',
    ts: `for await (const credential of errand.credentials.list()) console.log(credential.id, credential.type)`,
    python: `for credential in errand.credentials.list():
    print(credential.id, credential.type)`,
  },
  {
    id: 'getCredential',
    ts: `const credential = await errand.credentials.retrieve('tracker')
console.log(credential.allowedHosts)`,
    python: `credential = errand.credentials.retrieve("tracker")
print(credential.allowed_hosts)`,
  },
  {
    id: 'updateCredential',
    body: { token: 'another-secret' },
    ts: `await errand.credentials.update('tracker', { token: 'another-secret' })`,
    python: `errand.credentials.update("tracker", token="another-secret")`,
  },
  {
    id: 'deleteCredential',
    ts: `await errand.credentials.delete('tracker')`,
    python: `errand.credentials.delete("tracker")`,
  },
  {
    id: 'uploadSkill',
    ts: `import { readFile } from 'node:fs/promises'

const skill = await errand.skills.upload(new Uint8Array(await readFile('greeting.zip')))
console.log(skill.name, skill.version)`,
    python: `from pathlib import Path

skill = errand.skills.upload(Path("greeting.zip").read_bytes())
print(skill.name, skill.version)`,
  },
  {
    id: 'listSkills',
    ts: `for await (const skill of errand.skills.list()) console.log(skill.name, skill.description)`,
    python: `for skill in errand.skills.list():
    print(skill.name, skill.description)`,
  },
  {
    id: 'getSkill',
    ts: `const skill = await errand.skills.retrieve('greeting')
console.log(skill.description)`,
    python: `skill = errand.skills.retrieve("greeting")
print(skill.description)`,
  },
  {
    id: 'listSkillVersions',
    ts: `for await (const { version } of errand.skills.versions('greeting')) console.log(version)`,
    python: `for skill in errand.skills.versions("greeting"):
    print(skill.version)`,
  },
  {
    id: 'getSkillVersion',
    ts: `const first = await errand.skills.retrieve('greeting@1')
console.log(first.files)`,
    python: `first = errand.skills.retrieve("greeting@1")
print(first.files)`,
  },
  {
    id: 'readSkillFile',
    ts: `const { text } = await errand.skills.file('greeting', 'SKILL.md')
console.log(text)`,
    python: `print(errand.skills.file("greeting", "SKILL.md").text)`,
  },
  {
    id: 'deleteSkill',
    ts: `await errand.skills.delete('greeting')`,
    python: `errand.skills.delete("greeting")`,
  },
  {
    id: 'downloadFile',
    ts: `const { files } = await errand.interactions.retrieve(interactionId)
for (const file of files) console.log(file.name, (await errand.files.download(file)).length)`,
    python: `for file in errand.interactions.retrieve(interaction_id).files:
    print(file.name, len(errand.files.download(file)))`,
  },
  {
    id: 'getServer',
    ts: `const { models, sandbox } = await errand.server()
console.log(models, sandbox)`,
    python: `server = errand.server()
print(server.models, server.sandbox)`,
  },
  {
    id: 'deleteAgent',
    ts: `await errand.agents.delete('analyst')`,
    python: `errand.agents.delete("analyst")`,
  },
  {
    id: 'deleteInteraction',
    ts: `await errand.interactions.delete(interactionId)`,
    python: `errand.interactions.delete(interaction_id)`,
  },
]

/** Paths with a slash, for HTTP clients that can't send a colon. The examples are the same. */
const BY_SLASH = CALLS.filter(({ id }) => /^(stream|cancel|approve)Interaction$/.test(id)).map((example) => ({
  ...example,
  id: `${example.id}BySlash`,
}))
const LAST = CALLS.findIndex(({ id }) => id === 'deleteAgent')

export const EXAMPLES: readonly Example[] = [...CALLS.slice(0, LAST), ...BY_SLASH, ...CALLS.slice(LAST)]

/** The curl command of an operation. */
export function curl({ method, path, doc }: Operation): string {
  const id = String(doc.operationId)
  if (id === 'downloadFile') return 'curl -OJ "$FILE_URL"   # the `url` of one of an interaction’s `files`'
  if (id === 'downloadInputFile') return 'curl -OJ "$FILE_URL"   # the `url` of one of its `resolved.files`'
  const flags = /^(create.*Stream|stream)/.test(id) ? ' -N' : ''
  const body = bodyOf(id, doc)
  const verb =
    method === 'GET' || (method === 'POST' && (body !== undefined || id === 'uploadSkill')) ? '' : ` -X ${method}`
  const lines = [`curl${flags}${verb} "$ERRAND_BASE_URL${filled(path)}"`]
  if ((doc.security as unknown[]).length > 0)
    lines.push('-H "x-svc-api-key: $ERRAND_API_KEY"', '-H "Api-Revision: 2026-05-20"')
  if (id.startsWith('streamInteraction')) lines.push('-H "Last-Event-ID: 2"')
  if (id === 'uploadSkill') lines.push('-H "Content-Type: application/zip"', '--data-binary @greeting.zip')
  if (body !== undefined) lines.push('-H "Content-Type: application/json"', `-d '${writtenJson(body, 64, '  ')}'`)
  return lines.join(' \\\n  ')
}

const IDS: Readonly<Record<string, string>> = {
  agents: 'analyst',
  credentials: 'tracker',
  interactions: '$INTERACTION_ID',
}

function filled(path: string): string {
  const kind = path.split('/')[2] ?? ''
  return path
    .replace('{id}', IDS[kind] ?? '')
    .replace('{name}', 'greeting')
    .replace('{version}', '1')
    .replace(/\/file$/, '/file?path=SKILL.md')
}

function bodyOf(id: string, doc: JsonObject): unknown {
  const own = EXAMPLES.find((example) => example.id === id)?.body
  if (own) return own
  const content = (doc.requestBody as JsonObject | undefined)?.content as JsonObject | undefined
  return (content?.['application/json'] as JsonObject | undefined)?.example
}
