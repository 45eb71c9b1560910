/** Counts packets by the kernel, in a network namespace where every address belongs to this machine: there must be none. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { DRIVER, LIMITS } from '../fixture.ts'

test('no attempt of a sandbox sends a packet', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'errand-test-'))
  const told = JSON.stringify({
    options: { ...DRIVER, dataDir, limits: LIMITS, pool: 0, maxOpen: 1 },
    spec: { interactionId: 'packets', epoch: 1, lifetimeMs: 120_000, limits: LIMITS },
  })
  const user = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']
  const program = join(import.meta.dirname, 'packets.ts')
  const { stdout, stderr } = spawnSync('unshare', [...user, '--net', '--', process.execPath, program, told], {
    encoding: 'utf8',
  })
  rmSync(dataDir, { recursive: true, force: true })
  expect(stderr).toBe('')
  // One arrival, the test's own: it shows that the canaries work.
  expect(JSON.parse(stdout)).toEqual({ cameThrough: [], seen: 0, arrivals: 1, counted: true, own: 'closed' })
})
