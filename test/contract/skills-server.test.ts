/** Checks the operator's skills: a watched folder that all projects share, and that a project's own skills override. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Answer, errorOf, type Server, startServer } from '../support/server.ts'
import { toolRunner } from '../support/tool-run.ts'
import { skillText, zip } from '../support/zip.ts'

let place: string
let provider: FakeProvider
let server: Server
const skillsDir = () => join(place, 'skills')
const run = toolRunner(
  () => server,
  () => provider,
)

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), 'errand-test-'))
  mkdirSync(join(place, 'data'))
  put('greet/SKILL.md', skillText('greet', 'Say hello.'))
  put('some/where/deep/SKILL.md', skillText('deep'))
  put('.git/hidden/SKILL.md', skillText('hidden'))
  put('notes/readme.md', 'no skill')
  put('broken/SKILL.md', '---\nname: broken\n---\n')
  put('again/SKILL.md', skillText('greet', 'Say it again.'))
  put('linked/SKILL.md', skillText('linked'))
  symlinkSync('/etc/passwd', join(skillsDir(), 'linked/passwd'))
  provider = await openFakeProvider()
  server = await start()
})
afterAll(async () => {
  await server.stop()
  await provider.close()
  rmSync(place, { recursive: true })
})

function start(key?: string): Promise<Server> {
  return startServer({ provider, dataDir: join(place, 'data'), config: { skillsDir: skillsDir() }, key })
}

function put(path: string, text: string): void {
  mkdirSync(dirname(join(skillsDir(), path)), { recursive: true })
  writeFileSync(join(skillsDir(), path), text)
}

const read = (ref: string): Promise<Answer> => server.get(`/v1beta/skills/${ref}`)
const soon = (check: () => Promise<void>) => vi.waitFor(check, { timeout: 60_000, interval: 200 })

async function names(key?: string): Promise<string[]> {
  const { body } = await server.get('/v1beta/skills?order=asc', key ? { 'x-svc-api-key': key } : {})
  return body.skills.map(({ name }: { name: string }) => name).sort()
}

it('valid skills are available to every project; invalid ones are logged with their path and block nothing', async () => {
  expect(await names()).toEqual(['deep', 'greet'])
  expect(await names(await server.createKey('others'))).toEqual(['deep', 'greet'])
  expect((await read('greet')).body).toMatchObject({ source: 'server', version: 1 })
  const said = server.output()
  expect(said).toContain(`${skillsDir()}/broken/SKILL.md: \`description\` is missing`)
  expect(said).toContain(`${skillsDir()}/linked/passwd is a symbolic link`)
  // Folders are read in the order of their paths: `again` comes first and gets the name.
  expect(said).toContain(`${skillsDir()}/greet has the same name, greet, as ${skillsDir()}/again`)
  expect((await run([{ name: 'skill', args: { name: 'greet' } }], { skills: ['greet'] })).outputs[0]).toContain(
    'Say it again.',
  )
})

it('a changed skill gets a new version, a new folder is a new skill, and a removed folder removes its skill', async () => {
  put('again/SKILL.md', skillText('greet', 'Say good-bye.'))
  put('fresh/SKILL.md', skillText('fresh'))
  rmSync(join(skillsDir(), 'some'), { recursive: true })
  await soon(async () => {
    expect(await names()).toEqual(['fresh', 'greet'])
    expect((await read('greet')).body).toMatchObject({ version: 2, versions: [2, 1] })
  })
  const { outputs, body } = await run([{ name: 'skill', args: { name: 'greet' } }], { skills: ['greet@1'] })
  expect(outputs[0]).toContain('Say it again.')
  expect(body.resolved.skills).toEqual(['greet@1'])
})

it('a skill that is restored keeps its version numbers, so pins remain valid', async () => {
  expect(errorOf(await read('deep')).code).toBe('not_found')
  put('some/where/deep/SKILL.md', skillText('deep'))
  await soon(async () => expect((await read('deep@1')).status).toBe(200))
  expect((await read('deep')).body).toMatchObject({ version: 1, versions: [1] })
  rmSync(join(skillsDir(), 'some'), { recursive: true })
  await soon(async () => expect(await names()).toEqual(['fresh', 'greet']))
})

it('a skill that becomes invalid keeps its last valid version, and the error is logged once', async () => {
  put('fresh/SKILL.md', 'no front matter any more')
  const told = `${skillsDir()}/fresh/SKILL.md: does not begin with front matter`
  await soon(async () => expect(server.output()).toContain(told))
  expect((await read('fresh')).body.version).toBe(1)
  put('fresh/SKILL.md', skillText('fresh', 'Mended.'))
  await soon(async () => expect((await read('fresh')).body.version).toBe(2))
  expect(server.output().split(told)).toHaveLength(2)
})

it('a project’s own skill overrides the server’s until it is deleted', async () => {
  const body = zip([{ name: 'SKILL.md', data: skillText('greet', 'Say what this project says.') }])
  const sent = await fetch(`${server.url}/v1beta/skills`, {
    method: 'POST',
    headers: { 'x-svc-api-key': server.key, 'content-type': 'application/zip' },
    body,
  })
  const added = (await sent.json()) as { version: number; source: string; warnings: { message: string }[] }
  expect(added).toMatchObject({ version: 1, source: 'project' })
  expect(added.warnings[0]!.message).toContain('The server also has a skill greet')
  const { outputs } = await run([{ name: 'skill', args: { name: 'greet' } }], { skills: ['greet'] })
  expect(outputs[0]).toContain('Say what this project says.')
  expect(await names()).toEqual(['fresh', 'greet'])
  expect((await read('greet')).body.source).toBe('project')
  expect((await server.request('DELETE', '/v1beta/skills/greet')).status).toBe(200)
  expect((await read('greet')).body).toMatchObject({ source: 'server', version: 2 })
})

it('a caller can read the server’s skills but cannot delete them', async () => {
  for (const ref of ['greet', 'greet@1']) {
    const error = errorOf(await server.request('DELETE', `/v1beta/skills/${ref}`))
    expect(error).toMatchObject({ code: 'conflict', status: 409 })
  }
  expect((await read('greet')).status).toBe(200)
})

it('a restart without changes creates no new versions', async () => {
  await server.stop()
  server = await start(server.key)
  expect(await names()).toEqual(['fresh', 'greet'])
  expect((await read('greet')).body).toMatchObject({ version: 2, versions: [2, 1] })
})
