// An Express server that forwards the stream of a run to its callers and cancels the run when a caller disconnects:
//   curl -N http://127.0.0.1:3000/ask -d 'What is 17 * 23?'
import { Errand } from 'errand-client'
import express from 'express'

const errand = new Errand() // the key stays on this server
const app = express()

app.post('/ask', express.text({ type: () => true, limit: '64kb' }), async (request, response) => {
  const gone = new AbortController()
  response.on('close', () => gone.abort())
  const stream = errand.interactions.stream(
    { instruction: request.body, tools: ['code_execution'] },
    { signal: gone.signal, cancelOnAbort: true },
  )
  response.set({ 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' })
  try {
    for await (const { event, data } of stream) {
      response.write(`id: ${stream.lastEventId}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
    }
  } catch (error) {
    if (gone.signal.aborted) return
    response.write(`event: error\ndata: ${JSON.stringify({ message: error.message })}\n\n`)
  }
  response.end()
})

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
