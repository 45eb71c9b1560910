/** Accounts, projects, keys and settings in the database, on every backend. */
import { expect, it } from 'vitest'
import { openAccounts } from '../../src/accounts/open-accounts.ts'
import { onEveryBackend } from './backends.ts'
import { times } from './rows.ts'

const SECRET = 's'.repeat(32)
const START = 1_700_000_000_000
const HOUR = 3_600_000

onEveryBackend((backend) => {
  async function open(clock = { now: START }) {
    const db = await backend.open()
    return { db, clock, accounts: openAccounts({ db, secret: SECRET, now: () => clock.now }) }
  }

  it('accepts a key for its project as soon as it is created', async () => {
    const { accounts } = await open()
    const { key, info } = await accounts.createKey({ name: 'laptop ü', project: 'default' })
    expect(info).toMatchObject({ name: 'laptop ü', projectName: 'default', createdAt: START, lastUsedAt: undefined })
    expect(key.startsWith(info.prefix)).toBe(true)
    const caller = (await accounts.authenticate(key))!
    expect(caller).toMatchObject({ keyId: info.id, projectId: info.projectId, enabled: true })
    const other = await accounts.createKey({ name: 'ci', project: 'default' })
    expect(other.info.projectId).toBe(info.projectId)
    const elsewhere = await accounts.createKey({ name: 'ci', project: 'else' })
    expect(elsewhere.info.projectId).not.toBe(info.projectId)
    expect((await accounts.keys.list()).map(({ id }) => id).toSorted()).toEqual(
      [info.id, other.info.id, elsewhere.info.id].toSorted(),
    )
  })

  it('accepts only the exact key, and only under the same server secret', async () => {
    const { db, accounts } = await open()
    const { key } = await accounts.createKey({ name: 'k', project: 'default' })
    for (const text of ['', key.slice(1), `${key}x`, `${key.slice(0, -1)}\0`]) {
      expect(await accounts.authenticate(text)).toBeUndefined()
    }
    const stranger = openAccounts({ db, secret: 't'.repeat(32) })
    expect(await stranger.authenticate(key)).toBeUndefined()
    expect(await accounts.authenticate(await stranger.temporaryKey('default'))).toBeUndefined()
  })

  it('puts first keys that are created concurrently under one account and one project', async () => {
    const { db, accounts } = await open()
    const made = await Promise.all(times(12, (i) => accounts.createKey({ name: `${i}`, project: 'default' })))
    expect(new Set(made.map(({ info }) => info.projectId)).size).toBe(1)
    expect(await db.query.selectFrom('accounts').select('name').execute()).toEqual([{ name: 'default' }])
    expect(await db.query.selectFrom('projects').select('name').execute()).toEqual([{ name: 'default' }])
    const callers = await Promise.all(made.map(({ key }) => accounts.authenticate(key)))
    expect(new Set(callers.map((caller) => caller?.accountId)).size).toBe(1)
  })

  it('rejects a key once it is revoked or expired', async () => {
    const { accounts, clock } = await open()
    const revoked = await accounts.createKey({ name: 'r', project: 'default' })
    const expiring = await accounts.createKey({ name: 'e', project: 'default', expiresAt: START + HOUR })
    clock.now += 1
    expect(await accounts.keys.revoke(revoked.info.id)).toBe(true)
    expect(await accounts.authenticate(revoked.key)).toBeUndefined()
    clock.now += 1
    expect(await accounts.keys.revoke(revoked.info.id)).toBe(true)
    expect(await accounts.keys.revoke('key_none')).toBe(false)
    expect(await accounts.authenticate(expiring.key)).toBeDefined()
    clock.now = START + HOUR
    expect(await accounts.authenticate(expiring.key)).toBeUndefined()
    const listed = await accounts.keys.list()
    expect(listed.find(({ id }) => id === revoked.info.id)).toMatchObject({ revokedAt: START + 1 })
    expect(listed.find(({ id }) => id === expiring.info.id)).toMatchObject({ expiresAt: START + HOUR })
  })

  it('records when a key was last used', async () => {
    const { accounts, clock } = await open()
    const { key, info } = await accounts.createKey({ name: 'k', project: 'default' })
    clock.now += HOUR
    await Promise.all(times(10, () => accounts.authenticate(key)))
    // The record is written asynchronously.
    const lastUse = async () => (await accounts.keys.list()).find(({ id }) => id === info.id)!.lastUsedAt
    await expect.poll(lastUse).toBe(START + HOUR)
  })

  it('turns all keys of the account off and on', async () => {
    const { accounts } = await open()
    const name = 'experimental.managedAgents'
    expect(await accounts.getSetting(name)).toBe(true)
    const { key } = await accounts.createKey({ name: 'k', project: 'default' })
    await Promise.all(times(6, () => accounts.setSetting(name, false)))
    expect(await accounts.getSetting(name)).toBe(false)
    expect(await accounts.authenticate(key)).toMatchObject({ enabled: false })
    await accounts.setSetting(name, true)
    expect(await accounts.authenticate(key)).toMatchObject({ enabled: true })
    await expect(accounts.setSetting(name, true, 'nobody')).rejects.toMatchObject({ code: 'not_found' })
  })

  it('accepts a temporary key for its project without storing it', async () => {
    const { accounts } = await open()
    const { info } = await accounts.createKey({ name: 'k', project: 'default' })
    const caller = await accounts.authenticate(await accounts.temporaryKey('default'))
    expect(caller).toMatchObject({ projectId: info.projectId, enabled: true })
    expect(await accounts.keys.list()).toHaveLength(1)
  })
})
