/**
 * R6: the disk of the database and the sandbox host, or the disk of the files, has no free space or no free inodes.
 * Callers get a 503 or a failed run, and stored data can still be read. Once there is space, everything works again.
 *
 * The disks are small file systems in memory. Mounting them needs root.
 */
import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkEnded, createGate, ended, ROOMY } from '../contract/invariants.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { figure, rounds } from '../support/prove.ts'
import { errorOf, type Server, startServer } from '../support/server.ts'

const PATH = '/v1beta/interactions'
const ROUNDS = rounds(5, 1)
const POSTS = 10
const SIZE = '96M'
const INODES = 3_000
/**
 * In the full form, every second outage is longer than a worker's lease, and longer than a worker waits for the disk.
 */
const fullForMs = (round: number) => (process.env.PROVE && round % 2 === 1 ? 30_000 : 1_000)
const isRoot = process.getuid!() === 0

type What = 'space' | 'inodes'

describe.skipIf(!isRoot)(`a full disk${isRoot ? '' : ' (skipped: mounting needs root)'}`, () => {
  let home: string
  let provider: FakeProvider
  let server: Server
  let gate = createGate()
  const disk = (name: string) => join(home, name)

  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'errand-r06-'))
    for (const name of ['data', 'files']) {
      mkdirSync(disk(name))
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE},nr_inodes=${INODES}`, 'errand-r06', disk(name)])
    }
    provider = await openFakeProvider({ record: false })
    const code = "import time; time.sleep(1); open('outputs/made.bin', 'wb').write(bytes(200_000)); print('made')"
    const words = Array.from({ length: 40 }, (_, i) => `${i} ${'x'.repeat(400)} `)
    provider.when('[talks]', () => ({ text: words, hold: gate.opened, holdAfter: 20 }))
    provider.when('[makes]', { toolCalls: [{ name: 'code_execution', args: { code } }] }, { text: 'Made.' })
    provider.when('[short]', { text: 'Done.' })
    server = await startServer({
      provider,
      dataDir: disk('data'),
      config: { limits: { ...ROOMY, runningPerProject: 100 } },
      env: { ERRAND_LEASE_S: '2', ERRAND_BLOBS_URL: `file://${disk('files')}` },
    })
  })
  afterAll(async () => {
    await server?.stop()
    await provider?.close()
    for (const name of ['data', 'files']) execFileSync('umount', ['--lazy', disk(name)])
    rmSync(home, { recursive: true, force: true })
  })

  function body(instruction: string): object {
    const files = [{ name: 'in.txt', content: 'x'.repeat(50_000), encoding: 'utf-8' }]
    return { instruction, files, tools: ['code_execution'], background: true }
  }

  /** Returns the ids of acknowledged requests. Any other response must be a 503. */
  async function submit(instruction: string): Promise<string[]> {
    const answer = await server.post(PATH, body(instruction))
    if (answer.status === 200) return [answer.body.interactionId]
    expect(errorOf(answer)).toMatchObject({ status: 503, code: 'unavailable', retryable: true })
    return []
  }

  test.each<[string, What]>([
    ['data', 'space'],
    ['data', 'inodes'],
    ['files', 'space'],
    ['files', 'inodes'],
  ])('recovers when the %s disk had no free %s', { timeout: ROUNDS * 120_000 }, async (name, what) => {
    const tally = { refused: 0, completed: 0, failed: 0 }
    for (let round = 0; round < ROUNDS; round++) {
      gate = createGate()
      const before = [...(await submit('[talks]')), ...(await submit('[makes]'))]
      expect(before).toHaveLength(2)
      const empty = fill(join(disk(name), 'ballast'), what)
      const accepted: string[] = []
      for (let i = 0; i < POSTS; i++) accepted.push(...(await submit('[short]')))
      gate.open()
      for (const id of before) expect((await server.get(`${PATH}/${id}`)).status).toBe(200)
      await sleep(fullForMs(round))
      empty()
      tally.refused += POSTS - accepted.length
      for (const id of [...before, ...accepted]) {
        const { status, error } = await ended(server, id)
        expect(['completed', 'failed']).toContain(status)
        if (status === 'failed') expect(['unavailable', 'sandbox_unavailable', 'model_error']).toContain(error.code)
        await checkEnded(server, id)
        tally[status as 'completed' | 'failed']++
      }
      const [id] = await submit('[makes]')
      expect(await ended(server, id!)).toMatchObject({ status: 'completed', files: [{ name: 'made.bin' }] })
    }
    figure('R6', `${name} without ${what}: refused with 503; completed; failed`, Object.values(tally).join('; '))
  })
})

/** Uses up all free space. Returns a function that frees it. */
function fill(ballast: string, what: What): () => void {
  mkdirSync(ballast)
  try {
    if (what === 'inodes') for (let i = 0; i < INODES; i++) writeFileSync(join(ballast, String(i)), '')
    else for (const size of [1024 * 1024, 4096, 1]) writeUntilFull(join(ballast, String(size)), Buffer.alloc(size))
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe('ENOSPC')
  }
  return () => rmSync(ballast, { recursive: true })
}

function writeUntilFull(path: string, piece: Buffer): void {
  const file = openSync(path, 'w')
  try {
    for (;;) writeSync(file, piece)
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe('ENOSPC')
  } finally {
    closeSync(file)
  }
}
