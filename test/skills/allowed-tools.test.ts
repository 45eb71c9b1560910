/** `allowed-tools` of skills and the MCP servers of a run: missing tools are reported, and the caller's approval settings take precedence. */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type FakeMcp, openFakeMcp } from '../mcp/fake-mcp.ts'
import { type Server, startServer } from '../support/server.ts'
import { scripted } from '../support/tool-run.ts'
import { skillText, zip } from '../support/zip.ts'

let provider: FakeProvider
let mcp: FakeMcp
let server: Server
beforeAll(async () => {
  ;[provider, mcp] = await Promise.all([openFakeProvider(), openFakeMcp()])
  mcp.tools = [{ name: 'look' }, { name: 'remove' }]
  server = await startServer({ provider, config: { egress: { allowPrivate: [mcp.address] } } })
})
afterAll(async () => {
  await server?.stop()
  await mcp?.close()
  await provider?.close()
})
afterEach(() => {
  mcp.requests.length = 0
})

async function upload(name: string, allowedTools: string): Promise<void> {
  const response = await fetch(`${server.url}/v1beta/skills`, {
    method: 'POST',
    headers: { 'x-svc-api-key': server.key, 'content-type': 'application/zip' },
    body: zip([{ name: 'SKILL.md', data: skillText(name, '', `allowed-tools: ${allowedTools}\n`) }]),
  })
  expect(response.status).toBe(200)
}

/** Runs a tool call; returns whether it waited for approval, and the warnings. */
async function call(tool: string, skills: readonly string[], requireApproval: unknown) {
  const { body } = await server.post('/v1beta/interactions', {
    instruction: scripted(provider, [{ name: `files__${tool}`, args: {} }]),
    mcp: [{ name: 'files', url: mcp.url, requireApproval }],
    skills,
    background: true,
  })
  const path = `/v1beta/interactions/${body.id}`
  const settled = async () => {
    const { body: now } = await server.get(path)
    return now.pendingApprovals ? 'waited' : now.status
  }
  await expect.poll(settled, { timeout: 30_000 }).not.toBe('running')
  const outcome = await settled()
  if (outcome === 'waited') await server.post(`${path}:cancel`)
  return { outcome, body: (await server.get(path)).body }
}

it.each([
  ['what the skill names is pre-approved', 'mcp__files__look', 'look', 'completed'],
  ['what it does not name waits', 'mcp__files__look', 'remove', 'waited'],
  ['in the words that a model calls it by too', 'Read files__remove', 'remove', 'completed'],
  ['a whole server', 'mcp__files', 'remove', 'completed'],
  ['all of its tools', 'mcp__files__*', 'look', 'completed'],
  ['another server’s tool of that name is another', 'mcp__other__look', 'look', 'waited'],
  ['a part of a tool is not the tool', 'mcp__files__look(a:*)', 'look', 'waited'],
])('with `unless_skill`, %s', async (_what, allowed, tool, outcome) => {
  await upload('files-skill', allowed)
  expect((await call(tool, ['files-skill'], 'unless_skill')).outcome).toBe(outcome)
  expect(mcp.calls()).toHaveLength(outcome === 'completed' ? 1 : 0)
})

it('ignores a skill that the run does not have', async () => {
  await upload('files-skill', 'mcp__files__look')
  expect((await call('look', [], 'unless_skill')).outcome).toBe('waited')
})

it.each([true, 'always', ['look']])('requires approval by %j, whatever the skill allows', async (requireApproval) => {
  await upload('files-skill', 'mcp__files__look')
  expect((await call('look', ['files-skill'], requireApproval)).outcome).toBe('waited')
})

it('warns about a tool of a server that the run does not have', async () => {
  await upload('files-skill', 'mcp__files__look mcp__tracker__find')
  const { body } = await call('look', ['files-skill'], 'never')
  expect(body.warnings).toEqual([expect.objectContaining({ code: 'skill_tool_missing', param: 'skills[0]' })])
  expect(body.warnings[0].message).toContain('needs mcp__tracker__find, and')
})
