/**
 * S8: a thousand keys. None is stored in plain text, no mistyped key reaches the database, and a revoked key is refused
 * on every node.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openAccounts } from '../../src/accounts/open-accounts.ts'
import { openSqlite } from '../../src/store/sqlite/sqlite.ts'
import { figure, rounds } from '../support/prove.ts'
import { type Server, startServer } from '../support/server.ts'
import { firstOwner, type Member } from '../support/visitor.ts'
import { onEveryStore } from './stores.ts'

const DEAD_WITHIN_MS = 1_000
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_'

onEveryStore((createDatabase) => {
  let nodes: Server[]
  let owner: Member
  let dataDirs: string[]
  beforeAll(async () => {
    const database = await createDatabase()
    const count = database === undefined ? 1 : 2
    dataDirs = await Promise.all(Array.from({ length: count }, () => mkdtemp(join(tmpdir(), 'errand-s08-'))))
    nodes = []
    for (const dataDir of dataDirs) {
      const config = { limits: { callsPerMinute: 1_000_000 } }
      nodes.push(await startServer({ dataDir, database, config, ...(nodes[0] && { key: nodes[0].key }) }))
    }
    owner = await firstOwner(nodes[0]!)
  })
  afterAll(async () => {
    for (const node of nodes ?? []) await node.stop()
    for (const dataDir of dataDirs ?? []) await rm(dataDir, { recursive: true, force: true })
  })

  async function issue() {
    const { body, status, text } = await owner.post(`${owner.project}/keys`, { name: 'one of many' })
    expect(status, text).toBe(200)
    return { key: body.key as string, id: body.info.id as string }
  }

  const call = async (node: Server, key: string) => (await node.get('/v1beta/agents', { 'x-svc-api-key': key })).status

  test('keys appear neither in the database nor in the logs, whether valid, mistyped or refused', {
    timeout: 300_000,
  }, async () => {
    const made = []
    for (let i = 0; i < rounds(1_000); i++) made.push(await issue())
    for (const [i, { key }] of made.entries()) {
      const node = nodes[i % nodes.length]!
      expect(await call(node, key)).toBe(200)
      expect(await call(node, `${key}x`)).toBe(401)
    }
    const places = [await nodes[0]!.stored.text(), ...nodes.map((node) => node.output())]
    const found = made.filter(({ key }) => places.some((text) => text.includes(key) || text.includes(key.slice(-20))))
    expect(places[0]).toContain(made[0]!.id)
    expect(found).toEqual([])
    figure('S8', 'keys searched for in database and logs', made.length)
    figure('S8', 'found', found.length)
  })

  test('a revoked key is refused within a second, on every node', async () => {
    for (let i = 0; i < rounds(20, 3); i++) {
      const { key, id } = await issue()
      for (const node of nodes) expect(await call(node, key)).toBe(200)
      await owner.call('DELETE', `${owner.project}/keys/${id}`)
      const revoked = Date.now()
      const answers = await Promise.all(nodes.map((node) => call(node, key)))
      const ms = Date.now() - revoked
      if (ms < DEAD_WITHIN_MS) figure('S8', 'time until a revoked key is refused on all nodes, ms', ms)
      expect(answers).toEqual(nodes.map(() => 401))
    }
  })
})

test('a key with one wrong character causes no query', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'errand-s08-'))
  const db = await openSqlite(join(directory, 'errand.db'))
  const accounts = openAccounts({ db, secret: 's'.repeat(32) })
  const keys = []
  for (let i = 0; i < rounds(10, 2); i++) keys.push((await accounts.createKey({ name: 'k', project: 'p' })).key)
  // Every query fails from here on.
  await db.close()
  let typos = 0
  for (const key of keys) {
    await expect(accounts.authenticate(key)).rejects.toThrow()
    for (let at = 0; at < key.length; at++) {
      for (const letter of ALPHABET) {
        if (letter === key[at]) continue
        expect(await accounts.authenticate(key.slice(0, at) + letter + key.slice(at + 1))).toBeUndefined()
        typos++
      }
      expect(await accounts.authenticate(key.slice(0, at) + key.slice(at + 1))).toBeUndefined()
      const swapped = key.slice(0, at) + (key[at + 1] ?? '') + key[at] + key.slice(at + 2)
      if (swapped !== key) expect(await accounts.authenticate(swapped)).toBeUndefined()
    }
  }
  expect(typos).toBe(keys.length * 48 * 62)
  figure('S8', 'typos of one character refused without the database', typos)
  await rm(directory, { recursive: true })
})
