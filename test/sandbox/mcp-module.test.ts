/** The module `errand` in the sessions of every driver: it reaches an endpoint of the host and retries while there is none. */
import assert from 'node:assert/strict'
import { afterAll, beforeAll, test } from 'vitest'
import { createCodeEndpoint } from '../../src/engine/agent/code-endpoint.ts'
import type { Sandbox } from '../../src/sandbox/port.ts'
import { openWorld, run, type World } from './fixture.ts'

const PORT = 3129
const TOOL = { server: 's', tool: 'add', description: 'Adds.', parameters: {}, repeatable: false, approval: false }
const endpoint = createCodeEndpoint({
  list: () => ({ failed: false, text: JSON.stringify([TOOL]), isJson: true }),
  async call({ args }) {
    return { failed: args.fail === true, text: JSON.stringify({ sum: Number(args.a) + 1 }), isJson: args.fail !== true }
  },
})

let world: World
let sandbox: Sandbox
beforeAll(async () => {
  world = await openWorld()
  sandbox = await world.sandbox()
  await sandbox.setEnvironment({ ERRAND_MCP_PORT: String(PORT) })
  await sandbox.listen(PORT, endpoint.handle)
})
afterAll(async () => {
  await endpoint.close()
  await world.close()
})

test('Python calls a tool, and gets an error as an exception', async () => {
  const code = `
import errand
print(errand.mcp.s.add(a=1)['sum'])
try: errand.mcp.s.add(a=1, fail=True)
except errand.ToolError as error: print(error)`
  assert.equal((await run(sandbox, 'python', code)).output, '2\n{"sum":2}\n')
})

test('JavaScript calls a tool, and gets an error as an exception', async () => {
  const code = `
console.log((await errand.mcp.s.add({ a: 1 })).sum)
await errand.mcp.s.add({ a: 1, fail: true }).catch((error) => console.log(error.name, error.message))`
  assert.equal((await run(sandbox, 'javascript', code)).output, '2\nToolError {"sum":2}\n')
})

test('a call that is made while nobody listens is made when somebody does', async () => {
  const late = await world.sandbox()
  await late.setEnvironment({ ERRAND_MCP_PORT: String(PORT) })
  const running = run(late, 'python', "import errand; print(errand.mcp.s.add(a=2)['sum'])")
  await late.listen(PORT, endpoint.handle)
  assert.equal((await running).output, '3\n')
})
