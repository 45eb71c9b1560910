// VoltAgent's server with one agent and one tool. Its memory of conversations is off; what it observes it keeps in its
// process, as by default.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { Agent, createTool, VoltAgent } from '@voltagent/core'
import { honoServer } from '@voltagent/server-hono'
import { z } from 'zod'

// A line a run on stderr.
globalThis.AI_SDK_LOG_WARNINGS = false

const provider = createOpenAICompatible({ name: 'fake', baseURL: process.env.BENCH_PROVIDER, apiKey: 'none' })
const lookup = createTool({
  name: 'lookup',
  description: 'Looks up.',
  parameters: z.object({ query: z.string() }),
  execute: async () => 'done',
})
const agent = new Agent({
  id: 'agent',
  name: 'agent',
  instructions: 'Answer.',
  model: provider('fake'),
  tools: [lookup],
  memory: false,
})
const port = Number(process.env.BENCH_PORT)
new VoltAgent({ agents: { agent }, server: honoServer({ port, hostname: '127.0.0.1', enableSwaggerUI: false }) })
