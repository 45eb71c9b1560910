/**
 * R9: an interaction that kills its worker each time (a poison interaction) is claimed three times and then fails.
 * Interactions before and after it complete, although their workers were killed each time too.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkEnded, createGate, ended, ROOMY } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { figure, rounds } from '../support/prove.ts'
import { type Server, startServer } from '../support/server.ts'
import { onEveryStore } from './stores.ts'

const ROUNDS = rounds(10, 1)
/**
 * Lease time in seconds. A run that its worker has held for one lease time no longer counts as poison, so this is
 * longer than a start on a busy machine.
 */
const LEASE_S = 8
const PATH = '/v1beta/interactions'

onEveryStore((createDatabase) => {
  let provider: FakeProvider
  let dataDir: string
  let database: string | undefined
  let server: Server
  /** The running server. It may call a model before it reports that it has started. */
  let latest: Promise<Server>
  beforeAll(async () => {
    provider = await openFakeProvider({ record: false })
    dataDir = await mkdtemp(join(tmpdir(), 'errand-r09-'))
    database = await createDatabase()
    server = await start()
  })
  afterAll(async () => {
    await server?.stop()
    await provider?.close()
    await rm(dataDir, { recursive: true, force: true })
  })

  function start(): Promise<Server> {
    const options = { provider, dataDir, database, config: { limits: ROOMY }, env: { ERRAND_LEASE_S: `${LEASE_S}` } }
    latest = startServer({ ...options, ...(server && { key: server.key }) })
    return latest
  }

  async function begin(instruction: string): Promise<string> {
    return (await server.post(PATH, { instruction, background: true })).body.interactionId
  }

  /** Restarts the server, as a supervisor does, until the interaction has ended. */
  async function superviseUntilEnded(id: string): Promise<void> {
    for (let over = false; !over; ) {
      over = await ended(server, id).then(
        () => true,
        () => false,
      )
      if (over) return
      await server.stop('SIGKILL')
      server = await start()
    }
  }

  test('a poison interaction fails after three claims, and the others complete', {
    timeout: ROUNDS * 180_000,
  }, async () => {
    let most = 0
    for (let round = 0; round < ROUNDS; round++) {
      let claims = 0
      const [accepted, gate] = [createGate(), createGate()]
      provider.when(`[poison ${round}]`, () => {
        claims++
        void accepted.opened.then(async () => (await latest).process.kill('SIGKILL'))
        return { fault: 'stall' }
      })
      provider.when(`[neighbour ${round}]`, () => ({ text: 'Done.', hold: gate.opened }))
      const older = [await begin(`[neighbour ${round}] 1`), await begin(`[neighbour ${round}] 2`)]
      const poison = await begin(`[poison ${round}]`)
      const younger = await begin(`[neighbour ${round}] 3`)
      accepted.open()
      await superviseUntilEnded(poison)
      const { interaction } = await checkEnded(server, poison)
      expect(interaction).toMatchObject({ status: 'failed', error: { code: 'internal' } })
      expect(interaction.error.message).toContain('given up')
      expect(claims).toBeLessThanOrEqual(3)
      most = Math.max(most, claims)
      gate.open()
      for (const id of [...older, younger]) {
        await ended(server, id)
        expect((await checkEnded(server, id)).interaction).toMatchObject({ status: 'completed', output: 'Done.' })
      }
    }
    figure('R9', 'maximum claims of a poison interaction', most)
    figure('R9', 'other runs that failed with it', `0 of ${3 * ROUNDS}`)
  })
})
