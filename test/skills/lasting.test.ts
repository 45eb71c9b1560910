/** Runs keep their skills when the server dies, the skill is deleted, or the local disk is damaged. */
import { readdirSync, truncateSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { bash, outputsOf, scripted } from '../support/tool-run.ts'
import { skillText, zip } from '../support/zip.ts'

const LEASE = { ERRAND_LEASE_S: '2' }
let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  server = await startServer({ provider, env: LEASE })
})
afterAll(async () => {
  await server.stop()
  await rm(server.dataDir, { recursive: true, force: true })
  await provider.close()
})

async function upload(name: string, word: string): Promise<void> {
  const files = [
    { name: `${name}/SKILL.md`, data: skillText(name, `The word is ${word}.`) },
    { name: `${name}/scripts/say.sh`, data: `#!/bin/sh\necho ${word}\n`, mode: 0o100_755 },
  ]
  const response = await fetch(`${server.url}/v1beta/skills`, {
    method: 'POST',
    headers: { 'x-svc-api-key': server.key, 'content-type': 'application/zip' },
    body: zip(files),
  })
  expect(response.status).toBe(200)
}

const shelf = () => join(server.dataDir, 'skills-work/shelf')
const say = (name: string) => bash(`/skills/${name}/scripts/say.sh`)

it('a run resumed by another server has its skill, though the skill was deleted meanwhile', async () => {
  await upload('taken', 'marmalade')
  const gate = Promise.withResolvers<void>()
  const use = { name: 'skill', args: { name: 'taken' } }
  provider.when(
    '[taken]',
    { toolCalls: [use] },
    [
      { toolCalls: [say('taken')], hold: gate.promise },
      { toolCalls: [say('taken')], hold: gate.promise },
    ],
    { toolCalls: [use] },
    { text: 'Done.' },
  )
  const { body } = await server.post('/v1beta/interactions', {
    instruction: '[taken]',
    skills: ['taken'],
    tools: ['code_execution'],
    background: true,
  })
  const path = `/v1beta/interactions/${body.id}`
  const told = async () => outputsOf((await server.get(path)).body.executionTrace)
  await expect.poll(told, { timeout: 30_000 }).toHaveLength(1)
  const { dataDir, key } = server
  await server.stop('SIGKILL')
  // As on another machine, whose cache is empty.
  await rm(shelf(), { recursive: true, force: true })
  server = await startServer({ provider, dataDir, key, env: LEASE })
  expect((await server.request('DELETE', '/v1beta/skills/taken')).status).toBe(200)
  gate.resolve()
  await (await server.stream(`${path}:stream`)).all()
  const ended = (await server.get(path)).body
  expect(ended.status).toBe('completed')
  const [before, ran, after] = outputsOf(ended.executionTrace)
  expect(before).toContain('The word is marmalade.')
  expect(ran).toContain('marmalade')
  expect(after).toBe(before)
})

it('restores a cached folder whose content was lost', async () => {
  await upload('whole', 'intact')
  const ask = async () => {
    const instruction = scripted(provider, [say('whole')])
    const request = { instruction, skills: ['whole'], tools: ['code_execution'] }
    return outputsOf((await server.post('/v1beta/interactions', request)).body.executionTrace)[0]
  }
  expect(await ask()).toContain('intact')
  for (const name of readdirSync(shelf())) truncateSync(join(shelf(), name, 'scripts/say.sh'))
  expect(await ask()).toContain('intact')
})
