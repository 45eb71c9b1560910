/**
 * Effect of a hostile neighbor on a sandbox (row S4 of test/prove/rows.ts): the time of a small step, p50 and p99, with nothing
 * beside it and beside each kind of bomb. Each sandbox has half a core, so that a machine with two cores can serve both.
 *
 *     node bench/neighbor.ts [steps]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSandboxes } from '../src/sandbox/open-sandboxes.ts'
import type { Language, Sandbox } from '../src/sandbox/port.ts'
import { BUBBLEWRAP } from './bubblewrap.ts'

const STEPS = Number(process.argv[2] ?? 300)
const BOMBS: Readonly<Record<string, readonly [Language, string]>> = {
  nothing: ['bash', 'sleep 600'],
  forks: ['bash', 'bomb() { bomb | bomb & }; bomb; while :; do sleep 1; done'],
  memory: ['bash', 'while :; do python3 -c "b = []\nwhile True: b.append(bytearray(2**24))"; done 2>/dev/null'],
  disk: ['bash', 'while :; do cat /dev/zero > big; rm big; done 2>/dev/null'],
  files: [
    'python',
    'import os\nwhile True:\n  try:\n    for i in range(10**9): open(f"f{i}", "w")\n  except OSError: os.system("rm -f f*")',
  ],
  output: ['bash', 'yes'],
  processor: ['bash', 'for i in 1 2 3 4; do while :; do :; done & done; wait'],
}

const limits = { memoryMiB: 256, cpus: 0.5, pids: 64, workspaceMiB: 64, files: 5000, outputBytes: 65_536 }
const silent = () => {}
const log = { debug: silent, info: silent, warn: silent, error: silent }
const { signal } = new AbortController()
const dataDir = mkdtempSync(join(tmpdir(), 'errand-bench-'))
const sandboxes = await openSandboxes({ ...BUBBLEWRAP, dataDir, limits, pool: 0, maxOpen: 2, log })
const open = (interactionId: string): Promise<Sandbox> => {
  return sandboxes.open({ interactionId, epoch: 1, lifetimeMs: 3_600_000, limits }, signal)
}
let key = 0

async function step(sandbox: Sandbox): Promise<number> {
  const before = performance.now()
  const request = { key: `s${++key}`, language: 'bash', code: 'echo here', timeoutMs: 60_000 } as const
  const { output } = await sandbox.exec(request, silent, signal)
  if (output !== 'here\n') throw new Error(`The neighbor printed ${output}`)
  return performance.now() - before
}

const neighbor = await open('neighbor')
await step(neighbor)
for (const [name, [language, code]] of Object.entries(BOMBS)) {
  const bombed = await open(name)
  const over = new AbortController()
  const falling = bombed.exec({ key: name, language, code, timeoutMs: 3_600_000 }, silent, over.signal)
  const times: number[] = []
  for (let i = 0; i < STEPS; i++) times.push(await step(neighbor))
  over.abort()
  await falling
  await bombed.destroy()
  times.sort((a, b) => a - b)
  const at = (share: number) => times[Math.floor(share * (times.length - 1))]!.toFixed(2)
  console.log(`beside ${name.padEnd(9)} p50 ${at(0.5).padStart(7)} ms   p99 ${at(0.99).padStart(7)} ms`)
}
await neighbor.destroy()
await sandboxes.close()
rmSync(dataDir, { recursive: true })
