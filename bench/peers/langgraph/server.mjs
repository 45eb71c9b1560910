// LangGraph's server for JavaScript, which calls itself one for development, with a graph of a model and a tool. Its
// state (runs, threads, checkpoints) is in its memory, written to files now and then.
import { join } from 'node:path'
import { startServer } from '@langchain/langgraph-api/server'

await startServer({
  port: Number(process.env.BENCH_PORT),
  host: '127.0.0.1',
  // Its runs at once: 10 would be its default.
  nWorkers: Number(process.env.BENCH_AT_ONCE),
  cwd: process.cwd(),
  graphs: { agent: `${join(import.meta.dirname, 'graph.mjs')}:graph` },
})
