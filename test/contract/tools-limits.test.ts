/**
 * Checks `policy.sandbox` and `policy.maxToolDuration`: the limits of a run, set by request or agent within the
 * operator's maximum.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { bash, python, toolRunner } from '../support/tool-run.ts'

const SANDBOX = {
  ...{ memoryMiB: 256, cpus: 1, pids: 48, workspaceMiB: 32, files: 1000, outputBytes: 4096 },
  max: { memoryMiB: 320, workspaceMiB: 64, pids: 60 },
}

let provider: FakeProvider
let server: Server
beforeAll(async () => {
  provider = await openFakeProvider()
  server = await startServer({ provider, config: { sandbox: { ...SANDBOX, pool: 1 } } })
})
afterAll(async () => {
  await server?.stop()
  await provider?.close()
})

const run = toolRunner(
  () => server,
  () => provider,
)

const SIZE = python(`
import os
def of(path): s = os.statvfs(path); return s.f_blocks * s.f_frsize // 2**20, s.f_files
of('/workspace')`)

describe('policy.sandbox', () => {
  it('is the operator’s default, and is shown in `resolved`', async () => {
    const { body, outputs } = await run([SIZE])
    expect(outputs).toEqual(['(32, 1000)'])
    const { max, ...usual } = SANDBOX
    expect(body.resolved.policy).toMatchObject({ maxToolDuration: 3600, sandbox: usual })
  })

  it('of a request overrides the agent’s field by field, and the sandbox has these limits', async () => {
    const policy = { sandbox: { workspaceMiB: 48, files: 500, pids: 40 }, maxToolDuration: 20 }
    const { body: agent } = await server.post('/v1beta/agents', { policy })
    expect(agent.policy).toEqual(policy)
    const asked = { agentId: agent.id, policy: { sandbox: { workspaceMiB: 64, outputBytes: null } } }
    const { body, outputs } = await run([SIZE], asked)
    expect(outputs).toEqual(['(64, 500)'])
    expect(body.resolved.policy).toMatchObject({
      maxToolDuration: 20,
      sandbox: { memoryMiB: 256, cpus: 1, pids: 40, workspaceMiB: 64, files: 500, outputBytes: 4096 },
    })
  })

  it('limits the output that is stored of a call', async () => {
    const print = python('print("begin" + "x" * 3000 + "end")')
    const [whole] = (await run([print])).outputs
    expect(whole).toMatch(/^beginx{3000}end$/)
    const [cut] = (await run([print], { policy: { sandbox: { outputBytes: 1024 } } })).outputs
    expect(cut).toMatch(
      /^beginx+\n\[… 2,\d+ bytes of output cut here …\]\nx+end\n\[The output was longer than the limit of 1,024 bytes/,
    )
    expect(cut!.length).toBeLessThan(1500)
  })

  it('out of range is refused with the allowed range, on agents too', async () => {
    for (const path of ['/v1beta/interactions', '/v1beta/agents']) {
      const answer = await server.post(path, { instruction: 'hi', policy: { sandbox: { memoryMiB: 321 } } })
      expect(answer.status).toBe(400)
      expect(answer.body.error).toMatchObject({
        param: 'policy.sandbox.memoryMiB',
        message: '`policy.sandbox.memoryMiB` must be from 64 to 320 MiB.',
      })
    }
  })
})

describe('policy.maxToolDuration', () => {
  it('stops one call, reports that to the model, and the run continues', async () => {
    const { body, outputs } = await run([bash('echo begun; sleep 600'), bash('echo on')], {
      policy: { maxToolDuration: 1 },
    })
    expect(body.status).toBe('completed')
    expect(outputs[0]).toMatch(/^begun\n\[It was stopped after 1\.0 s, the time limit of one tool call/)
    expect(outputs[1]).toMatch(/^on\n/)
  })
})

it('reports to the model which limit a call reached, with its value', async () => {
  const { body, outputs } = await run([
    bash('head -c 100M /dev/zero > big'),
    bash('rm big; for i in $(seq 2000); do : > f$i || break; done; false'),
    python(
      'import subprocess, glob, os\nfor f in glob.glob("f*"): os.unlink(f)\nfor _ in range(100): subprocess.Popen(["sleep", "60"])',
    ),
    python('held = []\nwhile True: held.append(open("/dev/null"))'),
    python('blocks = []\nwhile True: blocks.append(bytearray(16 * 2**20))'),
  ])
  expect(body.status).toBe('completed')
  const [space, files, processes, open, memory] = outputs
  expect(space).toContain('[/workspace was full: it holds 32 MiB.')
  expect(files).toContain('[/workspace could hold no more files: its limit is 1,000.')
  expect(processes).toContain("[No more processes or threads could be started: the sandbox's limit of 48 was reached.")
  expect(open).toContain('[A process had 1,024 files open, the limit of one process')
  // Without a cgroup, Python itself reports the error.
  expect(memory).toMatch(/256 MiB of memory|MemoryError/)
})
