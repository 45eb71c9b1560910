/** `errand credentials`: a secret goes in by stdin or a file, and nothing gives it back. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Server, startServer } from '../support/server.ts'

const SECRET = 'planted-by-stdin-4c1a'

let server: Server
beforeAll(async () => {
  server = await startServer({})
})
afterAll(() => server?.stop())

const credentials = (args: string[], input?: string) =>
  server.errand(['credentials', ...args, '--server', server.url, '--key', server.key], input)

it('adds, rotates, lists and removes', async () => {
  const added = await credentials(['add', 'tracker', '--host', 'mcp.example.com', '--name', 'Tracker'], `${SECRET}\n`)
  expect(added).toMatchObject({ code: 0, stdout: '' })
  expect((await server.get('/v1beta/credentials/tracker')).body).toMatchObject({
    type: 'bearer',
    allowedHosts: ['mcp.example.com'],
  })
  const file = join(server.dataDir, 'oauth.yaml')
  writeFileSync(file, `type: oauth2\nrefreshToken: ${SECRET}\nclientId: errand\n`)
  expect((await credentials(['add', 'tracker', '--from', file])).stderr).toContain('changed')
  const listed = await credentials(['list'])
  expect(listed.stdout).toMatch(/tracker\s+Tracker\s+oauth2\s+mcp\.example\.com/)
  expect((await credentials(['list', '--json'])).stdout).not.toContain(SECRET)
  expect((await credentials(['remove', 'tracker'])).code).toBe(0)
  expect((await server.get('/v1beta/credentials/tracker')).status).toBe(404)
})

it('says what is wrong, and nothing of the secret', async () => {
  expect(await credentials(['add', 'tracker'], '  \n')).toMatchObject({ code: 2 })
  const file = join(server.dataDir, 'broken.yaml')
  writeFileSync(file, `: [${SECRET}`)
  const broken = await credentials(['add', 'tracker', '--from', file])
  expect(broken.code).toBe(2)
  const refused = await credentials(['add', 'tracker'], `${SECRET} with spaces`)
  expect(refused.code).not.toBe(0)
  expect(broken.stderr + refused.stderr).not.toContain(SECRET)
})
