/** Shutdown of a node while its database is down. */
import { expect, test } from 'vitest'
import { checkEnded, ended, ROOMY, until } from '../contract/invariants.ts'
import { openFakeProvider } from '../fake-provider.ts'
import { onPostgres } from '../store/backends.ts'
import { startServer } from '../support/server.ts'

onPostgres('a database that is away', (cluster) => {
  test('a node that is stopped closes everything, logs the runs that it could not release, and exits with 0', {
    timeout: 300_000,
  }, async () => {
    const provider = await openFakeProvider()
    const database = await cluster().createDatabase()
    const options = { provider, database, config: { limits: ROOMY, drainS: 1 }, env: { ERRAND_LEASE_S: '2' } }
    const first = await startServer(options)
    const stall = { fault: 'stall' } as const
    provider.when('[waits]', [stall, stall, { text: 'Done.' }])
    const submit = async (instruction: string) =>
      (await first.post('/v1beta/interactions', { instruction, background: true })).body.interactionId as string
    const ids = [await submit('[waits] one'), await submit('[waits] two')]
    await until(() => provider.requests.length === 2)

    await cluster().crash()
    const code = await first.stop()
    const said = first.output()
    expect(code, said).toBe(0)
    for (const id of ids) expect(said).toMatch(new RegExp(`${id}.*could not be released|could not be released.*${id}`))
    // Node prints its version after an uncaught error.
    expect(said).not.toMatch(/^Node\.js v/m)

    await cluster().restart()
    const second = await startServer({ ...options, key: first.key })
    for (const id of ids) {
      expect(await ended(second, id)).toMatchObject({ status: 'completed', output: 'Done.' })
      await checkEnded(second, id)
    }
    expect(await second.stop()).toBe(0)
    await provider.close()
  })
})
