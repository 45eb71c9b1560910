// A stream is left and taken up again behind the last event that came, here by another client; then a run is cancelled:
// when `cancel` resolves, no process of it is left.
import { Errand } from 'errand-client'

const request = { instruction: 'Compute the first 10 Fibonacci numbers', tools: ['code_execution' as const] }

const first = new Errand()
const stream = first.interactions.stream(request)
for await (const { event } of stream) {
  console.log(`1  ${stream.lastEventId}  ${event}`)
  if (event === 'tool_call') break // the run goes on without us
}

const second = new Errand()
const rest = second.interactions.events(stream.interactionId!, { after: stream.lastEventId })
for await (const { event } of rest) console.log(`2  ${rest.lastEventId}  ${event}`)

const { interactionId } = await second.interactions.start(request)
const { status } = await second.interactions
  .cancel(interactionId)
  .catch(() => second.interactions.retrieve(interactionId))
console.log(`the other run: ${status}`) // completed, where it was quicker than we
