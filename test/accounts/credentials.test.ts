/** Tests of stored credentials, on every database. */
import { expect, it } from 'vitest'
import { createCredentials } from '../../src/accounts/create-credentials.ts'
import { createVault } from '../../src/accounts/vault.ts'
import { onEveryBackend } from '../store/backends.ts'

const PROJECT = 'prj_1'
const secret = (token: string) => ({ type: 'bearer', token }) as const

onEveryBackend((backend) => {
  async function open() {
    const db = await backend.open()
    return { db, credentials: createCredentials({ db, vault: createVault('one secret') }) }
  }

  it('opens a stored credential only in its own project, and records the use', async () => {
    const { credentials } = await open()
    const made = await credentials.create(PROJECT, { name: 'Ü 🙂', allowedHosts: ['a.example'], secret: secret('t') })
    expect(await credentials.open(PROJECT, made.id)).toMatchObject({ credential: made, secret: secret('t') })
    await expect.poll(async () => (await credentials.find(PROJECT, made.id))!.lastUsedAt).toBeGreaterThan(0)
    expect(await credentials.open('prj_2', made.id)).toBeUndefined()
  })

  it('a renewal replaces only the version that it was made from', async () => {
    const { credentials } = await open()
    const { id } = await credentials.create(PROJECT, { id: 'one', name: 'One', secret: secret('1') })
    const { version } = (await credentials.open(PROJECT, id))!
    const next = await credentials.renew(PROJECT, id, version, secret('2'))
    expect(next).toBeGreaterThan(version)
    expect(await credentials.renew(PROJECT, id, version, secret('3'))).toBeUndefined()
    expect(await credentials.open(PROJECT, id)).toMatchObject({ credential: { name: 'One' }, secret: secret('2') })
    await credentials.remove(PROJECT, id)
    expect(await credentials.renew(PROJECT, id, next!, secret('4'))).toBeUndefined()
  })

  it('a sealed value that was copied to another project cannot be opened there', async () => {
    const { db, credentials } = await open()
    await credentials.create(PROJECT, { id: 'one', secret: secret('t') })
    await credentials.create('prj_2', { id: 'one', secret: secret('u') })
    const { sealed } = await db.query
      .selectFrom('credentials')
      .select('sealed')
      .where('project_id', '=', PROJECT)
      .executeTakeFirstOrThrow()
    const query = db.query.updateTable('credentials').set({ sealed }).where('project_id', '=', 'prj_2').compile()
    await db.write([{ query }])
    await expect(credentials.open('prj_2', 'one')).rejects.toThrow('could not be opened')
  })
})
