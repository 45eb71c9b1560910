/**
 * The attacks a driver makes on itself before it serves: one real sandbox, one script (probe.py), canaries that the host
 * opened for it. What was not refused closes the driver, in a sentence that names the attack.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import type { Driver } from '../driver.ts'
import type { SandboxFacts, SandboxLimits } from '../port.ts'
import { createRunner } from './runner.ts'
import { createSteps } from './steps.ts'

const TIMEOUT_MS = 15_000

interface Findings {
  readonly attacks: { name: string; refused: boolean; detail: string }[]
  readonly inside: string
}

/** Throws an Error with a sentence for the operator. `secrets`: paths of the host that must not be seen inside. */
export async function probeDriver(driver: Driver, limits: SandboxLimits, secrets: string[]): Promise<SandboxFacts> {
  const abstract = `errand-canary-${randomBytes(8).toString('hex')}`
  const canaries = await Promise.all([listen({ host: '127.0.0.1', port: 0 }), listen({ path: `\0${abstract}` })])
  try {
    const { port } = canaries[0]!.address() as AddressInfo
    const { attacks, inside } = await attack(driver, limits, { port, abstract, secrets })
    const open = attacks.filter(({ refused }) => !refused)
    if (open.length > 0) {
      const named = open.map(({ name, detail }) => `${name} (${detail})`).join(', ')
      throw new Error(
        `The ${driver.name} sandbox does not hold on this host, so it is not used: not refused were ${named}.`,
      )
    }
    return { driver: driver.name, ...driver.holds(limits), probes: attacks, inside }
  } finally {
    for (const canary of canaries) canary.close()
  }
}

async function attack(driver: Driver, limits: SandboxLimits, targets: object): Promise<Findings> {
  const cell = await driver.launch({ limits, profile: 'code', mounts: [] })
  try {
    const runner = createRunner(cell)
    await runner.ready
    const script = `targets = ${JSON.stringify(JSON.stringify(targets))}\n${readFileSync(join(import.meta.dirname, 'probe.py'), 'utf8')}`
    const request = { key: 'probe', language: 'python', timeoutMs: TIMEOUT_MS, outputBytes: 64 * 1024 } as const
    const output: Uint8Array[] = []
    await new Promise<void>((resolve) => {
      createSteps(runner, limits, () => void cell.end()).run(request, Buffer.from(script), (reply, bytes) => {
        if (reply.op === 'out') output.push(bytes!)
        else if (reply.op === 'done') resolve()
      })
    })
    return readFindings(Buffer.concat(output).toString())
  } finally {
    await cell.end()
  }
}

function readFindings(text: string): Findings {
  try {
    return JSON.parse(text.slice(text.indexOf('{'))) as Findings
  } catch {
    throw new Error(
      `The sandbox's self-test did not come to its end, so the sandbox is not used. It said: ${text.trim().slice(-500) || 'nothing'}`,
    )
  }
}

function listen(where: { host: string; port: number } | { path: string }): Promise<Server> {
  const server = createServer((socket) => socket.destroy())
  return new Promise((resolve, reject) => server.once('error', reject).listen(where, () => resolve(server)))
}
