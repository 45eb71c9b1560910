// Stops reading a stream and resumes it after the last received event, here with another client. Then cancels a run: when `cancel`
// resolves, none of its processes is left.
import { Errand } from 'errand-client'

const request = { instruction: 'Compute the first 10 Fibonacci numbers', tools: ['code_execution' as const] }

const first = new Errand()
const stream = first.interactions.stream(request)
for await (const { event } of stream) {
  console.log(`1  ${stream.lastEventId}  ${event}`)
  if (event === 'tool_call') break // the run continues
}

const second = new Errand()
const rest = second.interactions.events(stream.interactionId!, { after: stream.lastEventId })
for await (const { event } of rest) console.log(`2  ${rest.lastEventId}  ${event}`)

const { interactionId } = await second.interactions.start(request)
const { status } = await second.interactions
  .cancel(interactionId)
  .catch(() => second.interactions.retrieve(interactionId))
console.log(`the other run: ${status}`) // completed, if it ended before the call
