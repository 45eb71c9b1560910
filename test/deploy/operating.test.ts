/** docs/operating.md does what it says: a backup that was made under way is whole, and the unit is one that systemd reads. */
import { execFileSync, spawnSync } from 'node:child_process'
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'

const PAGE = new URL('../../docs/operating.md', import.meta.url)
const UNIT = new URL('../../deploy/systemd/errand.service', import.meta.url).pathname

let provider: FakeProvider
let backup: string
const servers: Server[] = []
beforeEach(async () => {
  provider = await openFakeProvider()
  backup = await mkdtemp(join(tmpdir(), 'errand-backup-'))
})
afterEach(async () => {
  for (const server of servers.splice(0)) if (server.process.exitCode === null) await server.stop()
  await provider.close()
  await rm(backup, { recursive: true, force: true })
})

test('a backup by the command on the page, made while the server runs, starts a server with all its data', async () => {
  const live = await startServer({ provider })
  servers.push(live)
  provider.when(
    '[report]',
    { toolCalls: [{ name: 'code_execution', args: { code: 'open("outputs/r.txt", "w").write("figures")' } }] },
    { text: 'Done.' },
  )
  const asked = { instruction: 'write it [report]', tools: ['code_execution'] }
  const { body } = await live.post('/v1beta/interactions', asked)

  const page = await readFile(PAGE, 'utf8')
  const command = /^node -e "(.*)"$/m.exec(page)![1]!
  const script = command.replaceAll('/var/lib/errand', live.dataDir).replaceAll('/backup', backup)
  execFileSync(process.execPath, ['-e', script])
  for (const place of ['blobs', 'secret', 'errand.yaml']) {
    await cp(join(live.dataDir, place), join(backup, place), { recursive: true })
  }
  await live.stop()

  const restored = await startServer({ provider, dataDir: backup, key: live.key })
  servers.push(restored)
  const kept = (await restored.get(`/v1beta/interactions/${body.id}`)).body
  expect(kept).toMatchObject({ status: 'completed', output: 'Done.', executionTrace: body.executionTrace })
  // Signed by the secret that was kept.
  const { pathname, search } = new URL(body.files[0].url)
  expect((await restored.get(pathname + search)).text).toBe('figures')
})

test('systemd accepts the unit, with warnings only about options newer than itself', () => {
  const { stdout, stderr, error } = spawnSync('systemd-analyze', ['verify', '--man=no', UNIT], { encoding: 'utf8' })
  expect(error).toBeUndefined()
  const said = `${stdout}${stderr}`
    .split('\n')
    .filter((line) => line.includes('errand.service'))
    // Needs systemd 254; and the program of the unit is not installed here.
    .filter((line) => !/DelegateSubgroup|\/opt\/errand\/script\/errand is not executable/.test(line))
  expect(said).toEqual([])
})
