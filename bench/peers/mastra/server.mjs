// Mastra's server (its adapter for Hono, as for production) with one agent and one tool. Nothing is stored: no storage, no
// memory, which is how it comes. Logging and telemetry are off.

import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { serve } from '@hono/node-server'
import { Agent } from '@mastra/core/agent'
import { Mastra } from '@mastra/core/mastra'
import { createTool } from '@mastra/core/tools'
import { MastraServer } from '@mastra/hono'
import { Hono } from 'hono'
import { z } from 'zod'

const provider = createOpenAICompatible({ name: 'fake', baseURL: process.env.BENCH_PROVIDER, apiKey: 'none' })
const lookup = createTool({
  id: 'lookup',
  description: 'Looks up.',
  inputSchema: z.object({ query: z.string() }),
  execute: async () => 'done',
})
const agent = new Agent({
  id: 'agent',
  name: 'agent',
  instructions: 'Answer.',
  model: provider('fake'),
  tools: { lookup },
})
const mastra = new Mastra({ agents: { agent }, logger: false, telemetry: { enabled: false } })
const app = new Hono()
app.get('/ready', (context) => context.text('ok'))
await new MastraServer({ app, mastra }).init()
serve({ fetch: app.fetch, port: Number(process.env.BENCH_PORT), hostname: '127.0.0.1' })
